/**
 * Sequelize 6: the `t` of `sequelize.transaction`. Uses the driver's own `connection`:
 * `sequelize.query` answers an INSERT with an id instead of a count, and with `replacements` a Date
 * loses its milliseconds.
 */
import type { DialectName } from "../databases/database.ts";
import type { Executor } from "./executor.ts";
import { mariadbExecutor } from "./mariadb.ts";
import { mysql2Executor } from "./mysql2.ts";
import { type PostgresOptions, pgExecutor } from "./pg.ts";
import { finished, hasMethods, refusal, type Shape, shapeOf } from "./shape.ts";

/** Returns undefined for anything but a Sequelize transaction. */
export function sequelizeExecutor(handle: Shape, dialect: DialectName, options: PostgresOptions): Executor | undefined {
  if (hasMethods(handle, "define", "transaction", "query", "authenticate") && "models" in handle) {
    throw refusal("a Sequelize instance", "use sequelize.transaction(async (t) => …) and pass its t");
  }
  if (!hasMethods(handle, "commit", "rollback", "afterCommit") || !("sequelize" in handle)) return undefined;
  const connection = shapeOf(handle["connection"]);
  if (handle["finished"] !== undefined || connection === undefined) throw finished("Sequelize transaction");
  const executor =
    dialect === "postgres"
      ? pgExecutor(connection, options)
      : (mysql2Executor(connection) ?? mariadbExecutor(connection));
  if (executor === undefined) {
    throw refusal(
      "a Sequelize transaction of another database",
      `this outbox is on ${dialect} (and SQLite is not supported through Sequelize)`,
    );
  }
  return { ...executor, kind: "sequelize" };
}
