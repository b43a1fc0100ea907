/**
 * Adapts a user's open transaction, from any driver or ORM, to an {@link Executor}, and begins our
 * own on pools, connections and handles. All are recognized by shape: see shape.ts.
 */
import type { DialectName } from "../databases/database.ts";
import { TransactionRequiredError } from "../runtime/errors.ts";
import { withoutValues } from "../runtime/without-values.ts";
import { drizzleExecutor } from "./drizzle.ts";
import type { Executor, Statement } from "./executor.ts";
import { knexExecutor } from "./knex.ts";
import { kyselyExecutor } from "./kysely.ts";
import { mariadbExecutor, openMariadb } from "./mariadb.ts";
import { mikroOrmExecutor } from "./mikro-orm.ts";
import { mysql2Executor, openMysql2 } from "./mysql2.ts";
import { transact, type Work } from "./own-transaction.ts";
import { openPg, type PostgresOptions, pgExecutor } from "./pg.ts";
import { sayingWhenFailed } from "./pg-status.ts";
import { postgresJsExecutor, transactPostgresJs } from "./postgres-js.ts";
import { prismaExecutor } from "./prisma.ts";
import { sequelizeExecutor } from "./sequelize.ts";
import { hasMethods, type Shape, shapeOf } from "./shape.ts";
import { sqliteExecutor, transactSqlite } from "./sqlite-handle.ts";
import { typeormExecutor } from "./typeorm.ts";

export type { PostgresOptions } from "./pg.ts";

/**
 * The executor of an open transaction. Returns a `tx` of `outbox.transaction` unchanged.
 *
 * Throws `TransactionRequiredError`, which says what to pass instead, for a pool, a client or ORM
 * outside a transaction, a transaction known to have ended, a handle of another database, and
 * anything unknown. The rest is checked on the server by the INSERT, or `inTransaction` before it.
 */
export function toExecutor(handle: unknown, dialect: DialectName, options: PostgresOptions = {}): Executor {
  const shape = shapeOf(handle);
  if (shape === undefined) throw unknownHandle(handle, dialect);
  if (hasMethods(shape, "run", "query") && typeof shape["kind"] === "string") return shape as unknown as Executor;
  const executor = ormExecutor(shape, dialect, options) ?? driverExecutor(shape, dialect, options);
  if (executor === undefined) throw unknownHandle(handle, dialect);
  const plain = { ...executor, run: (statement: Statement) => executor.run(statement).catch(rethrowWithoutValues) };
  return { ...(dialect === "postgres" ? sayingWhenFailed(plain) : plain), handle: handle as object };
}

function rethrowWithoutValues(error: unknown): never {
  throw withoutValues(error);
}

/** ORMs come first, because some have methods with the names of a driver's. */
function ormExecutor(shape: Shape, dialect: DialectName, options: PostgresOptions): Executor | undefined {
  return (
    drizzleExecutor(shape, dialect) ??
    kyselyExecutor(shape, dialect) ??
    knexExecutor(shape, dialect) ??
    typeormExecutor(shape, dialect) ??
    mikroOrmExecutor(shape, dialect) ??
    sequelizeExecutor(shape, dialect, options) ??
    prismaExecutor(shape, dialect)
  );
}

function driverExecutor(shape: Shape, dialect: DialectName, options: PostgresOptions): Executor | undefined {
  const found: readonly [DialectName, () => Executor | undefined][] = [
    ["mysql", () => mysql2Executor(shape) ?? mariadbExecutor(shape)],
    ["postgres", () => pgExecutor(shape, options) ?? postgresJsExecutor(shape, options)],
    ["sqlite", () => sqliteExecutor(shape)],
  ];
  for (const [driverDialect, recognize] of found) {
    const executor = recognize();
    if (executor === undefined) continue;
    if (driverDialect === dialect) return executor;
    throw new TransactionRequiredError(
      `this is a ${executor.kind} handle, but the outbox is on ${dialect}: pass a transaction of the database that has the message table. Nothing was written.`,
    );
  }
  return undefined;
}

/**
 * Begins on a pool, connection or handle of a raw driver, runs `work`, commits; rolls back and
 * rethrows if it throws. The `tx` refuses statements with `TransactionLostError` once the database
 * has ended the transaction (rule: ended-transaction).
 *
 * Throws `TransactionRequiredError` for a connection already in a transaction, and for ORMs, which
 * begin their own. On MySQL `prepare` means that the pool is rowpost's own.
 */
export async function runTransaction<T>(
  on: unknown,
  dialect: DialectName,
  work: Work<T>,
  options: PostgresOptions = {},
): Promise<T> {
  const shape = shapeOf(on);
  if (shape === undefined) throw unknownHandle(on, dialect);
  if (dialect === "mysql") {
    const prepares = options.prepare === true;
    const connection = (await openMysql2(shape, prepares)) ?? (await openMariadb(shape, prepares));
    if (connection !== undefined) return transact(connection, work);
  }
  if (dialect === "postgres") {
    const running = transactPostgresJs(shape, work, options);
    if (running !== undefined) return running;
    const connection = await openPg(shape, options);
    if (connection !== undefined) return transact(connection, work);
  }
  if (dialect === "sqlite") {
    const running = transactSqlite(shape, work);
    if (running !== undefined) return running;
  }
  throw new TransactionRequiredError(
    `outbox.transaction begins on a pool, connection or handle of ${DRIVERS[dialect]}; with an ORM begin its own transaction, pass that to outbox.enqueue, and call outbox.wake() after the commit`,
  );
}

const DRIVERS: Readonly<Record<DialectName, string>> = {
  mysql: "mysql2 or mariadb",
  postgres: "pg or postgres.js",
  sqlite: "node:sqlite, @photostructure/sqlite or better-sqlite3",
};

function unknownHandle(handle: unknown, dialect: DialectName): TransactionRequiredError {
  const name = shapeOf(handle)?.constructor?.name;
  const what = handle === null || typeof handle !== "object" ? String(handle).slice(0, 40) : `a ${name ?? "object"}`;
  return new TransactionRequiredError(
    `enqueue needs an open transaction and got ${what}: pass the tx of outbox.transaction, a connection of ${DRIVERS[dialect]} after BEGIN, or a transaction of Drizzle, Kysely, Knex, TypeORM, MikroORM, Sequelize or Prisma. Nothing was written.`,
  );
}
