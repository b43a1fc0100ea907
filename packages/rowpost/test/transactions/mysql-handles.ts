/** Every handle of the MySQL family that enqueue takes, each on a connection pool of several connections, with the driver's or ORM's own way to begin. */
import { createRequire } from "node:module";
import type { Handles } from "./handles.ts";
import { createPrismaClient, type PrismaTransaction } from "./prisma-client.ts";

const INSERT_ORDER = "INSERT INTO orders (id) VALUES (?)";
const require = createRequire(import.meta.url);

interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

function addressOf(url: string): Address {
  const { hostname, pathname, port, username } = new URL(url);
  return { host: hostname, port: Number(port), user: username, database: pathname.slice(1) };
}

/** The factories by name. */
export const MYSQL_HANDLES: Readonly<Record<string, (url: string) => Promise<Handles>>> = {
  "mysql2 connection": async (url) => {
    const { createPool } = await import("mysql2/promise");
    const pool = createPool(addressOf(url));
    return {
      root: pool,
      async transaction(work) {
        const connection = await pool.getConnection();
        try {
          await connection.beginTransaction();
          await work(connection, (id) => connection.execute(INSERT_ORDER, [id]));
          await connection.commit();
        } catch (error) {
          await connection.rollback();
          throw error;
        } finally {
          connection.release();
        }
      },
      async withoutTransaction(work) {
        const connection = await pool.getConnection();
        await work(connection).finally(() => connection.release());
      },
      close: () => pool.end(),
    };
  },

  "mysql2 connection with callbacks": async (url) => {
    const { createPool } = await import("mysql2");
    const pool = createPool({ ...addressOf(url), rowsAsArray: true, namedPlaceholders: true });
    return {
      root: pool,
      async transaction(work) {
        const connection = await pool.promise().getConnection();
        const { connection: core } = connection as unknown as { connection: unknown };
        try {
          await connection.beginTransaction();
          await work(core, (id) => connection.execute(INSERT_ORDER, [id]));
          await connection.commit();
        } catch (error) {
          await connection.rollback();
          throw error;
        } finally {
          connection.release();
        }
      },
      close: () => pool.promise().end(),
    };
  },

  "mariadb connection": async (url) => {
    const { createPool } = await import("mariadb");
    const pool = createPool({ ...addressOf(url), allowPublicKeyRetrieval: true, connectionLimit: 4 });
    return {
      root: pool,
      async transaction(work) {
        const connection = await pool.getConnection();
        try {
          await connection.beginTransaction();
          await work(connection, (id) => connection.query(INSERT_ORDER, [id]));
          await connection.commit();
        } catch (error) {
          await connection.rollback();
          throw error;
        } finally {
          await connection.release();
        }
      },
      async withoutTransaction(work) {
        const connection = await pool.getConnection();
        await work(connection).finally(() => connection.release());
      },
      close: () => pool.end(),
    };
  },

  "mariadb connection with callbacks": async (url) => {
    const { createConnection } = require("mariadb/callback") as typeof import("mariadb/callback");
    const connection = createConnection({ ...addressOf(url), allowPublicKeyRetrieval: true, rowsAsArray: true });
    const query = (sql: string, values: readonly unknown[] = []): Promise<unknown> =>
      new Promise((resolve, reject) => {
        connection.query(sql, values, (error: unknown, result: unknown) => {
          if (error) reject(error as Error);
          else resolve(result);
        });
      });
    return {
      root: undefined,
      async transaction(work) {
        await query("BEGIN");
        try {
          await work(connection, (id) => query(INSERT_ORDER, [id]));
          await query("COMMIT");
        } catch (error) {
          await query("ROLLBACK");
          throw error;
        }
      },
      withoutTransaction: (work) => work(connection),
      close: async () => connection.destroy(),
    };
  },

  drizzle: async (url) => {
    const [{ drizzle }, { sql }, { createPool }] = await Promise.all([
      import("drizzle-orm/mysql2"),
      import("drizzle-orm"),
      import("mysql2/promise"),
    ]);
    const pool = createPool(addressOf(url));
    const db = drizzle(pool);
    return {
      root: db,
      transaction: (work) =>
        db.transaction((tx) => work(tx, (id) => tx.execute(sql`INSERT INTO orders (id) VALUES (${id})`))),
      close: () => pool.end(),
    };
  },

  kysely: async (url) => {
    const [{ CompiledQuery, Kysely, MysqlDialect }, { createPool }] = await Promise.all([
      import("kysely"),
      import("mysql2"),
    ]);
    const db = new Kysely<object>({ dialect: new MysqlDialect({ pool: createPool(addressOf(url)) }) });
    return {
      root: db,
      transaction: (work) =>
        db.transaction().execute((trx) => work(trx, (id) => trx.executeQuery(CompiledQuery.raw(INSERT_ORDER, [id])))),
      close: () => db.destroy(),
    };
  },

  knex: async (url) => {
    const { default: createKnex } = await import("knex");
    const knex = createKnex({ client: "mysql2", connection: addressOf(url), pool: { min: 0, max: 4 } });
    return {
      root: knex,
      transaction: (work) => knex.transaction((trx) => work(trx, (id) => trx("orders").insert({ id }))),
      close: () => knex.destroy(),
    };
  },

  "typeorm entity manager": async (url) => {
    const { DataSource } = await import("typeorm");
    const { database, host, port, user } = addressOf(url);
    const source = new DataSource({ type: "mysql", host, port, username: user, database });
    await source.initialize();
    return {
      root: source,
      transaction: (work) => source.transaction((manager) => work(manager, (id) => manager.query(INSERT_ORDER, [id]))),
      withoutTransaction: (work) => work(source.manager),
      close: () => source.destroy(),
    };
  },

  "typeorm query runner": async (url) => {
    const { DataSource } = await import("typeorm");
    const { database, host, port, user } = addressOf(url);
    const source = new DataSource({ type: "mariadb", host, port, username: user, database });
    await source.initialize();
    return {
      root: source,
      async transaction(work) {
        const runner = source.createQueryRunner();
        await runner.startTransaction();
        try {
          await work(runner, (id) => runner.query(INSERT_ORDER, [id]));
          await runner.commitTransaction();
        } catch (error) {
          await runner.rollbackTransaction();
          throw error;
        } finally {
          await runner.release();
        }
      },
      async withoutTransaction(work) {
        const runner = source.createQueryRunner();
        await work(runner).finally(() => runner.release());
      },
      close: () => source.destroy(),
    };
  },

  "mikro-orm": async (url) => {
    const { EntitySchema, MikroORM } = await import("@mikro-orm/mysql");
    const Order = new EntitySchema<{ id: string }>({
      name: "Order",
      tableName: "orders",
      properties: { id: { type: "string", primary: true } },
    });
    const { database, ...address } = addressOf(url);
    const orm = await MikroORM.init({ ...address, dbName: database, entities: [Order] });
    return {
      root: orm.em,
      transaction: (work) => orm.em.fork().transactional((em) => work(em, (id) => em.insert(Order, { id }))),
      withoutTransaction: (work) => work(orm.em.fork()),
      close: () => orm.close(),
    };
  },

  "sequelize on mysql2": (url) => sequelize(url, "mysql"),
  "sequelize on mariadb": (url) => sequelize(url, "mariadb"),

  prisma: async (url) => {
    const { PrismaMariaDb } = await import("@prisma/adapter-mariadb");
    const adapter = new PrismaMariaDb({ ...addressOf(url), allowPublicKeyRetrieval: true, connectionLimit: 4 });
    const prisma = createPrismaClient("mysql", adapter);
    return {
      root: prisma,
      transaction: (work) =>
        prisma.$transaction((tx: PrismaTransaction) => work(tx, (id) => tx.$executeRawUnsafe(INSERT_ORDER, id))),
      close: () => prisma.$disconnect(),
    };
  },
};

async function sequelize(url: string, dialect: "mysql" | "mariadb"): Promise<Handles> {
  const { Sequelize } = await import("sequelize");
  const { database, host, port, user } = addressOf(url);
  const dialectOptions = dialect === "mariadb" ? { allowPublicKeyRetrieval: true } : {};
  const db = new Sequelize({ dialect, host, port, username: user, database, logging: false, dialectOptions });
  return {
    root: db,
    transaction: (work) =>
      db.transaction((t) =>
        work(t, (id) => db.query("INSERT INTO orders (id) VALUES ($1)", { transaction: t, bind: [id] })),
      ),
    close: () => db.close(),
  };
}
