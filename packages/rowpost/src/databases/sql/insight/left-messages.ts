/** Unsent messages, by what they wait for. */
import type { LeftMessages } from "../../../relay/store.ts";
import type { MessageTable } from "../cold-table.ts";
import { decodeState, integer, type Row, text } from "../rows.ts";
import { COUNTED_ROWS, type Read } from "./requests.ts";
import { countStates, countWaiting } from "./statements.ts";

/** Two statements over a bounded number of rows each. */
export async function leftMessages({
  read,
  table,
}: {
  readonly table: MessageTable;
  readonly read: Read;
}): Promise<LeftMessages> {
  const counts = new Map<string, number>();
  const add = (name: string, row: Row): void => void counts.set(name, (counts.get(name) ?? 0) + integer(row, "count"));
  let nextBackoffInMs: number | undefined;
  for (const row of await read(countWaiting(table, COUNTED_ROWS))) {
    const kind = text(row, "kind");
    add(kind, row);
    if (kind === "backoff") nextBackoffInMs = Math.max(0, integer(row, "next_in_ms"));
  }
  const states = ["sending", "failed", "suspended"] as const;
  for (const row of await read(countStates(table, { states, limit: COUNTED_ROWS })))
    add(decodeState(table.layout, row["state"]), row);
  const count = (name: string): number => counts.get(name) ?? 0;
  return {
    due: count("due"),
    backoff: count("backoff"),
    delayed: count("delayed"),
    behind: count("behind"),
    sending: count("sending"),
    failed: count("failed"),
    suspended: count("suspended"),
    nextBackoffInMs,
  };
}
