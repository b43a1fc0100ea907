/** Every PostgreSQL handle that enqueue takes, each on a pool of several connections, with the driver's or ORM's own way to begin. */
import type { Pool } from "pg";
import type { Handles } from "./handles.ts";
import { createPrismaClient, type PrismaTransaction } from "./prisma-client.ts";

const INSERT_ORDER = "INSERT INTO orders (id) VALUES ($1)";

async function poolOf(url: string): Promise<Pool> {
  const { default: pg } = await import("pg");
  return new pg.Pool({ connectionString: url, max: 4 });
}

/** The factories by name. `onStatement`: postgres.js reports each statement that it sends; the others go through pg, where they are counted. */
export const POSTGRES_HANDLES: Readonly<Record<string, (url: string, onStatement: () => void) => Promise<Handles>>> = {
  "pg client": async (url) => {
    const pool = await poolOf(url);
    return {
      root: pool,
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          await work(client, (id) => client.query(INSERT_ORDER, [id]));
          await client.query("COMMIT");
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      async withoutTransaction(work) {
        const client = await pool.connect();
        await work(client).finally(() => client.release());
      },
      close: () => pool.end(),
    };
  },

  "postgres.js transaction": async (url, onStatement) => {
    const { default: postgres } = await import("postgres");
    const sql = postgres(url, { max: 4, onnotice: () => {}, debug: onStatement });
    return {
      root: sql,
      transaction: (work) =>
        sql.begin((tx) => work(tx, (id) => tx`INSERT INTO orders (id) VALUES (${id})`)).then(() => {}),
      async withoutTransaction(work) {
        const reserved = await sql.reserve();
        await work(reserved).finally(() => reserved.release());
      },
      close: () => sql.end(),
    };
  },

  "drizzle on pg": async (url) => {
    const [{ drizzle }, { sql }] = await Promise.all([import("drizzle-orm/node-postgres"), import("drizzle-orm")]);
    const pool = await poolOf(url);
    const db = drizzle(pool);
    return {
      root: db,
      transaction: (work) =>
        db.transaction((tx) => work(tx, (id) => tx.execute(sql`INSERT INTO orders (id) VALUES (${id})`))),
      close: () => pool.end(),
    };
  },

  "drizzle on postgres.js": async (url, onStatement) => {
    const [{ drizzle }, { sql }, { default: postgres }] = await Promise.all([
      import("drizzle-orm/postgres-js"),
      import("drizzle-orm"),
      import("postgres"),
    ]);
    const client = postgres(url, { max: 4, onnotice: () => {}, debug: onStatement });
    const db = drizzle(client);
    return {
      root: db,
      transaction: (work) =>
        db.transaction((tx) => work(tx, (id) => tx.execute(sql`INSERT INTO orders (id) VALUES (${id})`))),
      close: () => client.end(),
    };
  },

  kysely: async (url) => {
    const { CompiledQuery, Kysely, PostgresDialect } = await import("kysely");
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: await poolOf(url) }) });
    return {
      root: db,
      transaction: (work) =>
        db.transaction().execute((trx) => work(trx, (id) => trx.executeQuery(CompiledQuery.raw(INSERT_ORDER, [id])))),
      close: () => db.destroy(),
    };
  },

  "kysely, controlled": async (url) => {
    const { CompiledQuery, Kysely, PostgresDialect } = await import("kysely");
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: await poolOf(url) }) });
    return {
      root: db,
      async transaction(work) {
        const trx = await db.startTransaction().execute();
        try {
          await work(trx, (id) => trx.executeQuery(CompiledQuery.raw(INSERT_ORDER, [id])));
        } catch (error) {
          await trx.rollback().execute();
          throw error;
        }
        await trx.commit().execute();
      },
      close: () => db.destroy(),
    };
  },

  knex: async (url) => {
    const { default: createKnex } = await import("knex");
    const knex = createKnex({ client: "pg", connection: url, pool: { min: 0, max: 4 } });
    return {
      root: knex,
      transaction: (work) => knex.transaction((trx) => work(trx, (id) => trx("orders").insert({ id }))),
      close: () => knex.destroy(),
    };
  },

  typeorm: async (url) => {
    const { DataSource } = await import("typeorm");
    const source = new DataSource({ type: "postgres", url });
    await source.initialize();
    return {
      root: source,
      transaction: (work) => source.transaction((manager) => work(manager, (id) => manager.query(INSERT_ORDER, [id]))),
      withoutTransaction: (work) => work(source.manager),
      close: () => source.destroy(),
    };
  },

  "mikro-orm": async (url) => {
    const { EntitySchema, MikroORM } = await import("@mikro-orm/postgresql");
    const Order = new EntitySchema<{ id: string }>({
      name: "Order",
      tableName: "orders",
      properties: { id: { type: "string", primary: true } },
    });
    const orm = await MikroORM.init({ clientUrl: url, entities: [Order] });
    return {
      root: orm.em,
      transaction: (work) => orm.em.fork().transactional((em) => work(em, (id) => em.insert(Order, { id }))),
      withoutTransaction: (work) => work(orm.em.fork()),
      close: () => orm.close(),
    };
  },

  sequelize: async (url) => {
    const { Sequelize } = await import("sequelize");
    const db = new Sequelize(url, { logging: false });
    return {
      root: db,
      transaction: (work) =>
        db.transaction((t) => work(t, (id) => db.query(INSERT_ORDER, { transaction: t, bind: [id] }))),
      close: () => db.close(),
    };
  },

  prisma: async (url) => {
    const { PrismaPg } = await import("@prisma/adapter-pg");
    const prisma = createPrismaClient("postgresql", new PrismaPg({ connectionString: url, max: 4 }));
    return {
      root: prisma,
      transaction: (work) =>
        prisma.$transaction((tx: PrismaTransaction) => work(tx, (id) => tx.$executeRawUnsafe(INSERT_ORDER, id))),
      close: () => prisma.$disconnect(),
    };
  },
};
