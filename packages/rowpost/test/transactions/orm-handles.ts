/** The ORMs, each on a pool of several connections of MySQL, MariaDB or PostgreSQL. */
import { bracketing, type Connect, type Handles, type Target } from "./handles.ts";
import { createPrismaClient, type PrismaTransaction } from "./prisma-client.ts";

export const drizzle: Connect = async ({ dialect, host, port, user, database, url }) => {
  const { sql } = await import("drizzle-orm");
  const insertOrder = (id: string) => sql`INSERT INTO orders (id) VALUES (${id})`;
  if (dialect === "mysql") {
    const [module, { createPool }] = await Promise.all([import("drizzle-orm/mysql2"), import("mysql2/promise")]);
    const pool = createPool({ host, port, user, database });
    const db = module.drizzle(pool);
    return {
      root: db,
      transaction: (work) => db.transaction((tx) => work(tx, (id) => tx.execute(insertOrder(id)))),
      close: () => pool.end(),
    };
  }
  const [module, { default: pg }] = await Promise.all([import("drizzle-orm/node-postgres"), import("pg")]);
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const db = module.drizzle(pool);
  return {
    root: db,
    transaction: (work) => db.transaction(async (tx) => await work(tx, (id) => tx.execute(insertOrder(id)))),
    close: () => pool.end(),
  };
};

export const drizzleOnPostgresJs: Connect = async ({ url, onStatement }) => {
  const [module, { sql }, { default: postgres }] = await Promise.all([
    import("drizzle-orm/postgres-js"),
    import("drizzle-orm"),
    import("postgres"),
  ]);
  const client = postgres(url, { max: 4, onnotice: () => {}, debug: onStatement });
  const db = module.drizzle(client);
  return {
    root: db,
    transaction: (work) =>
      db.transaction((tx) => work(tx, (id) => tx.execute(sql`INSERT INTO orders (id) VALUES (${id})`))),
    close: () => client.end(),
  };
};

async function openKysely({ dialect, host, port, user, database, url }: Target, camelCase = false) {
  const { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect } = await import("kysely");
  const plugins = camelCase ? [new CamelCasePlugin()] : [];
  if (dialect === "mysql") {
    const { createPool } = await import("mysql2");
    const dialect = new MysqlDialect({ pool: createPool({ host, port, user, database }) });
    return new Kysely<object>({ dialect, plugins });
  }
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  return new Kysely<object>({ dialect: new PostgresDialect({ pool }), plugins });
}

export const kysely: Connect = (target) => runKysely(target, false);

/** Kysely that renames the columns of every answer. */
export const kyselyCamelCase: Connect = (target) => runKysely(target, true);

async function runKysely(target: Target, camelCase: boolean): Promise<Handles> {
  const { CompiledQuery } = await import("kysely");
  const db = await openKysely(target, camelCase);
  return {
    root: db,
    transaction: (work) =>
      db
        .transaction()
        .execute((trx) => work(trx, (id) => trx.executeQuery(CompiledQuery.raw(target.insertOrder, [id])))),
    close: () => db.destroy(),
  };
}

/** Kysely's `startTransaction`, whose transaction knows that it has ended. */
export const kyselyControlled: Connect = async (target) => {
  const { CompiledQuery } = await import("kysely");
  const db = await openKysely(target);
  return {
    root: db,
    async transaction(work) {
      const trx = await db.startTransaction().execute();
      try {
        await work(trx, (id) => trx.executeQuery(CompiledQuery.raw(target.insertOrder, [id])));
      } catch (error) {
        await trx.rollback().execute();
        throw error;
      }
      await trx.commit().execute();
    },
    close: () => db.destroy(),
  };
};

export const knex: Connect = (target) => openKnex(target);

/** Knex that renames the columns of every answer, as its users do with one of several packages. */
export const knexCamelCase: Connect = (target) => openKnex(target, { postProcessResponse: camelized });

function camelized(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(camelized);
  if (typeof answer !== "object" || answer === null) return answer;
  const camel = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const { rows, ...rest } = answer as Readonly<Record<string, unknown>>;
  // The answer of pg has much else in it, which stays.
  if (rows !== undefined) return { ...rest, rows: camelized(rows) };
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [camel(name), value]));
}

async function openKnex({ dialect, host, port, user, database }: Target, more: object = {}): Promise<Handles> {
  const { default: createKnex } = await import("knex");
  const client = dialect === "mysql" ? "mysql2" : "pg";
  const db = createKnex({ client, connection: { host, port, user, database }, pool: { min: 0, max: 4 }, ...more });
  return {
    root: db,
    transaction: (work) => db.transaction((trx) => work(trx, (id) => trx("orders").insert({ id }))),
    close: () => db.destroy(),
  };
}

async function openTypeorm({ dialect, host, port, user, database }: Target) {
  const { DataSource } = await import("typeorm");
  const source = new DataSource({ type: dialect, host, port, username: user, database });
  return await source.initialize();
}

export const typeormManager: Connect = async (target) => {
  const source = await openTypeorm(target);
  return {
    root: source,
    transaction: (work) => source.transaction((em) => work(em, (id) => em.query(target.insertOrder, [id]))),
    withoutTransaction: (work) => work(source.manager),
    close: () => source.destroy(),
  };
};

export const typeormRunner: Connect = async (target) => {
  const source = await openTypeorm(target);
  return {
    root: source,
    ...bracketing(async () => {
      const runner = source.createQueryRunner();
      return {
        handle: runner,
        begin: () => runner.startTransaction(),
        commit: () => runner.commitTransaction(),
        rollback: () => runner.rollbackTransaction(),
        insertOrder: (id) => runner.query(target.insertOrder, [id]),
        release: () => runner.release(),
      };
    }),
    close: () => source.destroy(),
  };
};

export const mikroOrm: Connect = async ({ dialect, host, port, user, database }) => {
  const [{ EntitySchema }, mysql, postgres] = await Promise.all([
    import("@mikro-orm/core"),
    import("@mikro-orm/mysql"),
    import("@mikro-orm/postgresql"),
  ]);
  const Order = new EntitySchema<{ id: string }>({
    name: "Order",
    tableName: "orders",
    properties: { id: { type: "string", primary: true } },
  });
  const options = { host, port, user, dbName: database, entities: [Order] };
  const orm = await (dialect === "mysql" ? mysql.MikroORM.init(options) : postgres.MikroORM.init(options));
  return {
    root: orm.em,
    transaction: (work) => orm.em.fork().transactional((em) => work(em, (id) => em.insert(Order, { id }))),
    withoutTransaction: (work) => work(orm.em.fork()),
    close: () => orm.close(),
  };
};

export const sequelize: Connect = (target) => openSequelize(target, target.dialect);

/** Sequelize on the mariadb driver. */
export const sequelizeOnMariadb: Connect = (target) => openSequelize(target, "mariadb");

async function openSequelize(target: Target, dialect: "mysql" | "mariadb" | "postgres"): Promise<Handles> {
  const { Sequelize } = await import("sequelize");
  const { database, host, port, user } = target;
  const dialectOptions = dialect === "mariadb" ? { allowPublicKeyRetrieval: true } : {};
  const db = new Sequelize({ dialect, host, port, username: user, database, logging: false, dialectOptions });
  const insertOrder = "INSERT INTO orders (id) VALUES ($1)";
  return {
    root: db,
    transaction: (work) =>
      db.transaction((t) => work(t, (id) => db.query(insertOrder, { transaction: t, bind: [id] }))),
    close: () => db.close(),
  };
}

export const prisma: Connect = async ({ dialect, host, port, user, database, url, insertOrder }) => {
  const [{ PrismaMariaDb }, { PrismaPg }] = await Promise.all([
    import("@prisma/adapter-mariadb"),
    import("@prisma/adapter-pg"),
  ]);
  const client =
    dialect === "mysql"
      ? createPrismaClient(
          "mysql",
          new PrismaMariaDb({ host, port, user, database, allowPublicKeyRetrieval: true, connectionLimit: 4 }),
        )
      : createPrismaClient("postgresql", new PrismaPg({ connectionString: url, max: 4 }));
  return {
    root: client,
    transaction: (work) =>
      client.$transaction((tx: PrismaTransaction) => work(tx, (id) => tx.$executeRawUnsafe(insertOrder, id))),
    close: () => client.$disconnect(),
  };
};
