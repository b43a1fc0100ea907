/**
 * Kysely 0.27 and later: the `trx` of `transaction().execute` and of `startTransaction`. MikroORM 7
 * has one underneath.
 */
import type { DialectName } from "../databases/database.ts";
import { askServer } from "./ask-server.ts";
import type { Executor } from "./executor.ts";
import { finished, hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

interface CompiledQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: "RawNode";
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly [];
  };
  readonly queryId: { readonly queryId: string };
}

interface Trx {
  getExecutor(): unknown;
  executeQuery(query: CompiledQuery): Promise<{ readonly rows?: unknown; readonly numAffectedRows?: bigint }>;
}

/** A Kysely transaction as an executor; undefined for anything else. */
export function kyselyExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!hasMethods(handle, "executeQuery", "selectFrom", "getExecutor")) return undefined;
  if (handle["isTransaction"] !== true) {
    throw refusal("a Kysely instance", "use db.transaction().execute(async (trx) => …) and pass its trx");
  }
  // Only a controlled transaction (startTransaction) tells that it has ended.
  if (handle["isCommitted"] === true || handle["isRolledBack"] === true) throw finished("Kysely transaction");
  const trx = handle as unknown as Trx;
  /** Kysely tells by a throw, from any method, that the other kind of transaction has ended. */
  const ended = (error: unknown): unknown => (isEnded(error) ? finished("Kysely transaction", error) : error);
  async function whileOpen<T>(use: () => Promise<T>): Promise<T> {
    try {
      return await use();
    } catch (error) {
      throw ended(error);
    }
  }
  /** At once where the server is known to be MariaDB: a promise would say that it was asked. */
  function ask(): boolean | undefined | Promise<boolean> {
    try {
      const owner = shapeOf(trx.getExecutor())?.["adapter"];
      const run = (text: string) => whileOpen(() => trx.executeQuery(compiled(text, [])));
      return askServer(dialect, { run, owner });
    } catch (error) {
      throw ended(error);
    }
  }
  return {
    kind: "kysely",
    run: async ({ params, text }) => {
      const { numAffectedRows, rows } = await whileOpen(() => trx.executeQuery(compiled(text, params)));
      return queryResult(rows, numAffectedRows);
    },
    inTransaction: ask,
  };
}

/** The error has no code. */
function isEnded(error: unknown): boolean {
  return error instanceof Error && /^Transaction is already (?:committed|rolled back)/.test(error.message);
}

/**
 * What `CompiledQuery.raw(text, params)` makes. The node keeps plugins and loggers that look at it
 * working.
 */
function compiled(sql: string, parameters: readonly unknown[]): CompiledQuery {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "rowpost" },
  };
}
