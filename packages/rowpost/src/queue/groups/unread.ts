import type { Run } from "../../databases/sql/queue/room.ts";
import { text, textOrNull } from "../../databases/sql/rows.ts";
import { queueMonth } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { Unread } from "./requests.ts";
import { firstMessage } from "./statements.ts";

/** Ids of a partition, both ends included. */
export interface Unfinished {
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
}

export function monthsOf(months: readonly number[], { fromId, toId }: Unfinished): number[] {
  if (compareIds(fromId, toId) > 0) return [];
  return months.filter((month) => month >= queueMonth(fromId) && month <= queueMonth(toId));
}

export async function firstUnread(
  run: Run,
  months: readonly number[],
  range: Unfinished & { readonly topic: string },
): Promise<Unread["first"]> {
  for (const month of months) {
    const [row] = (await run(firstMessage({ month, ...range }))).rows;
    if (row === undefined) continue;
    return { id: text(row, "id"), key: textOrNull(row, "message_key"), type: textOrNull(row, "message_type") };
  }
  return undefined;
}
