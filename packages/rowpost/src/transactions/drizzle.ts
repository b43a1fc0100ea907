/** Drizzle 0.30 and later: the `tx` of `transaction`, on mysql2, pg and postgres.js. */
import type { DialectName } from "../databases/database.ts";
import { askServer } from "./ask-server.ts";
import type { Executor, QueryResult } from "./executor.ts";
import { hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

/** The two methods that Drizzle needs of a query, as its own `sql` tag returns them. */
interface Query {
  getSQL(): Query;
  toQuery(): { readonly sql: string; readonly params: readonly unknown[] };
}

interface Tx {
  readonly dialect: unknown;
  execute(query: Query): Promise<unknown>;
}

/** Returns undefined for anything but a Drizzle transaction. */
export function drizzleExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!("dialect" in handle && "session" in handle) || !hasMethods(handle, "transaction", "select", "insert")) {
    return undefined;
  }
  if (!hasMethods(handle, "rollback")) {
    throw refusal("a Drizzle database", "use db.transaction(async (tx) => …) and pass its tx");
  }
  if (dialect === "sqlite") {
    throw refusal(
      "a Drizzle transaction on SQLite, which is synchronous and ends before a promise goes on",
      "BEGIN on the handle and pass that, or use outbox.transaction(handle, …)",
    );
  }
  const tx = handle as unknown as Tx;
  const client = shapeOf(shapeOf(handle["session"])?.["client"]);
  return {
    kind: "drizzle",
    pipelines: client !== undefined && hasMethods(client, "unsafe", "notify"),
    run: async ({ params, text }) => fromDriver(await tx.execute(query(text, params))),
    inTransaction: () =>
      askServer(dialect, {
        run: (text) => tx.execute(query(text, [])),
        owner: tx.dialect,
        okPacket: (answer) => (Array.isArray(answer) ? answer[0] : answer),
      }),
  };
}

function query(sql: string, params: readonly unknown[]): Query {
  const made: Query = { getSQL: () => made, toQuery: () => ({ sql, params }) };
  return made;
}

/**
 * Drizzle returns the driver's answer: [rows or OK packet, fields] of mysql2, a result of pg, an
 * array with a count of postgres.js.
 */
function fromDriver(answer: unknown): QueryResult {
  const shape = shapeOf(answer);
  if (!Array.isArray(answer)) return queryResult(shape?.["rows"], shape?.["rowCount"] ?? undefined);
  if ("count" in answer) return queryResult(answer, shape?.["count"] ?? undefined);
  return queryResult(answer[0], shapeOf(answer[0])?.["affectedRows"]);
}
