/** postgres.js: the `sql` of `begin` or `savepoint`, and reserved connections. */
import type { Executor, Statement } from "./executor.ts";
import type { OwnConnection, Work } from "./own-transaction.ts";
import { transact, USER_STATEMENT } from "./own-transaction.ts";
import type { PostgresOptions } from "./pg.ts";
import { sayingWhenFailed } from "./pg-status.ts";
import { hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

interface Sql {
  unsafe(text: string, params: readonly unknown[], options: { readonly prepare: boolean }): Promise<unknown>;
}

interface Root extends Sql {
  begin<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

/** Returns undefined for anything but a postgres.js transaction. */
export function postgresJsExecutor(handle: Shape, options: PostgresOptions): Executor | undefined {
  if (!isSql(handle)) return undefined;
  if (hasMethods(handle, "begin")) {
    throw refusal(
      "the sql of postgres.js, which is a pool",
      "use sql.begin(async (tx) => …) and pass its tx, or outbox.transaction(sql, …)",
    );
  }
  return executorOf(handle as unknown as Sql, options);
}

/**
 * `sql` is a function with methods; `savepoint` marks a transaction, `release` a reserved
 * connection, `begin` the root.
 */
function isSql(handle: Shape): boolean {
  return typeof handle === "function" && hasMethods(handle, "unsafe", "notify", "json");
}

function executorOf(sql: Sql, options: PostgresOptions): Executor {
  return {
    kind: "postgres.js",
    pipelines: true,
    run: async ({ name, params, text }: Statement) => {
      const prepare = options.prepare === true && name !== USER_STATEMENT;
      const result = await sql.unsafe(text, params, { prepare });
      // The answer is an array of rows with a count, null for statements that count nothing.
      return queryResult(result, shapeOf(result)?.["count"] ?? undefined);
    },
    inTransaction: () => undefined,
  };
}

/**
 * Our own transaction inside postgres.js' `begin`; undefined for anything else. It rolls back after
 * any failed query, even a caught one, so its COMMIT never covers a failed transaction.
 */
export function transactPostgresJs<T>(handle: Shape, work: Work<T>, options: PostgresOptions): Promise<T> | undefined {
  if (!isSql(handle) || !hasMethods(handle, "begin")) return undefined;
  return (handle as unknown as Root).begin((sql) => transact(insideBegin(sql, options), work));
}

function insideBegin(sql: Sql, options: PostgresOptions): OwnConnection {
  const nothing = async (): Promise<void> => {};
  return {
    executor: sayingWhenFailed(executorOf(sql, options)),
    begin: nothing,
    commit: nothing,
    rollback: nothing,
    ended: () => false,
    release: nothing,
  };
}
