import type { Unconfirmed } from "../../../admin/message-admin.ts";
import type { MessageTable } from "../cold-table.ts";
import { integer, type Row, text } from "../rows.ts";
import { COUNTED_ROWS, type Read } from "./requests.ts";
import type { MessageSearch } from "./search.ts";
import { confirmedBy, countUnconfirmed, lastConsumers, listUnconfirmed } from "./statements.ts";

const LOOKED_AT = 1_000;

export interface UnconfirmedParts {
  readonly table: MessageTable;
  readonly read: Read;
  readonly search: Pick<MessageSearch, "summaries">;
}

export async function readUnconfirmed({ read, search, table }: UnconfirmedParts, limit: number): Promise<Unconfirmed> {
  const listed = (await read(listUnconfirmed(table, limit + 1))).map((row) => text(row, "id"));
  const ids = listed.slice(0, limit);
  const confirmed = ids.length === 0 ? [] : await read(confirmedBy(table, ids));
  const by = groupedBy(confirmed, "id");
  const summaries = new Map(
    (
      await search.summaries(
        ids.map((id) => ({ id })),
        false,
      )
    ).map((message) => [message.id, message]),
  );
  const consumers = groupedBy(await read(lastConsumers(table, LOOKED_AT)), "message_type");
  const counted = await read(countUnconfirmed(table, COUNTED_ROWS));
  const counts = counted.map((row) => ({
    type: text(row, "message_type"),
    overdue: integer(row, "overdue") === 1,
    count: integer(row, "count"),
  }));
  const sum = (overdue: boolean): number =>
    counts.reduce((total, each) => total + (each.overdue === overdue ? each.count : 0), 0);
  const isCut = { true: sum(true) >= COUNTED_ROWS, false: sum(false) >= COUNTED_ROWS };
  return {
    // In list order, without those confirmed meanwhile.
    messages: ids.flatMap((id) => {
      const message = summaries.get(id);
      return message?.state === "sent" ? [{ ...message, confirmedBy: by.get(id) ?? [] }] : [];
    }),
    more: listed.length > limit,
    counts: counts.map((each) => ({ ...each, atLeast: isCut[`${each.overdue}`] })),
    consumers: [...consumers].map(([type, names]) => ({ type, consumers: names })),
  };
}

/** Consumers grouped by this alias, in order. */
function groupedBy(rows: readonly Row[], alias: string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const row of rows) {
    const key = text(row, alias);
    groups.set(key, [...(groups.get(key) ?? []), text(row, "consumer")].toSorted());
  }
  return groups;
}
