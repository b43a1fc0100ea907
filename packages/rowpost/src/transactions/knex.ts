/** Knex 2 and 3: the `trx` of `transaction`, also underneath MikroORM 6. */
import type { DialectName } from "../databases/database.ts";
import { askServer } from "./ask-server.ts";
import type { Executor, QueryResult } from "./executor.ts";
import { toQuestionMarks } from "./placeholders.ts";
import { finished, hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

interface Trx {
  raw(text: string, bindings: readonly unknown[]): Promise<unknown>;
  isCompleted?(): boolean;
  readonly client: { readonly config?: unknown };
}

/** Returns undefined for anything but a Knex transaction. */
export function knexExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (typeof handle !== "function" || !hasMethods(handle, "raw", "from", "transaction") || !("client" in handle)) {
    return undefined;
  }
  if (handle["isTransaction"] !== true) {
    throw refusal("a Knex instance", "use knex.transaction(async (trx) => …) and pass its trx");
  }
  const trx = handle as unknown as Trx;
  if (trx.isCompleted?.() === true) throw finished("Knex transaction");
  async function send(text: string, params: readonly unknown[]): Promise<unknown> {
    try {
      return await trx.raw(text, params);
    } catch (error) {
      // Knex puts the statement before PostgreSQL's message.
      if (error instanceof Error && "severity" in error) error.message = error.message.replace(/^[\s\S]* - /, "");
      // The transaction ended while the statement was under way. The error has no code.
      throw trx.isCompleted?.() === true && /already complete/.test(String(error))
        ? finished("Knex transaction", error)
        : error;
    }
  }
  return {
    kind: "knex",
    run: async ({ params, text }) => {
      const raw = toQuestionMarks(text, params, { dollars: dialect === "postgres" });
      return fromDriver(await send(raw.text, raw.params));
    },
    inTransaction: () =>
      askServer(dialect, {
        run: (text) => send(text, []),
        owner: trx.client.config,
        okPacket: (answer) => (Array.isArray(answer) ? answer[0] : answer),
      }),
  };
}

/**
 * Knex returns the driver's answer: [rows or OK packet, fields] of mysql2, a result of pg, rows or
 * {changes} of SQLite.
 */
function fromDriver(answer: unknown): QueryResult {
  if (Array.isArray(answer)) {
    const first: unknown = answer[0];
    if (Array.isArray(first)) return queryResult(first, undefined);
    const affected = shapeOf(first)?.["affectedRows"];
    return affected === undefined ? queryResult(answer, undefined) : queryResult(undefined, affected);
  }
  const shape = shapeOf(answer);
  return queryResult(shape?.["rows"], shape?.["rowCount"] ?? shape?.["changes"]);
}
