/**
 * Kysely 0.27 and later: the `trx` of `transaction().execute` and of `startTransaction`, also
 * underneath MikroORM 7.
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

/** Returns undefined for anything but a Kysely transaction. */
export function kyselyExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!hasMethods(handle, "executeQuery", "selectFrom", "getExecutor")) return undefined;
  if (handle["isTransaction"] !== true) {
    throw refusal("a Kysely instance", "use db.transaction().execute(async (trx) => …) and pass its trx");
  }
  // Only a controlled transaction (startTransaction) shows that it has ended.
  if (handle["isCommitted"] === true || handle["isRolledBack"] === true) throw finished("Kysely transaction");
  const trx = handle as unknown as Trx;
  /** For the other kind, any method throws once it has ended. */
  const ended = (error: unknown): unknown => (isEnded(error) ? finished("Kysely transaction", error) : error);
  async function whileOpen<T>(use: () => Promise<T>): Promise<T> {
    try {
      return await use();
    } catch (error) {
      throw ended(error);
    }
  }
  /** Answers at once for a known MariaDB: a promise would mean that the server was asked. */
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

/** Same as `CompiledQuery.raw(text, params)`. The node is for plugins and loggers that read it. */
function compiled(sql: string, parameters: readonly unknown[]): CompiledQuery {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "rowpost" },
  };
}
