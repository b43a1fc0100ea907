/** Messages that wait for a confirmation, on any SQL database. */
import type { Unconfirmed } from "../../outbox/message-admin.ts";
import type { Statement } from "../../transactions/executor.ts";
import { COUNTED_ROWS } from "./insight-statements.ts";
import type { MessageSearch } from "./message-search.ts";
import { integer, type Row, text } from "./rows.ts";
import type { UnconfirmedStatements } from "./unconfirmed-statements.ts";

/** Confirmations that are looked at for the names of consumers. */
const LOOKED_AT = 1_000;

export interface UnconfirmedParts {
  readonly statements: { readonly admin: UnconfirmedStatements };
  readonly read: (statement: Statement) => Promise<readonly Row[]>;
  readonly search: Pick<MessageSearch, "summaries">;
}

export async function readUnconfirmed(
  { read, search, statements }: UnconfirmedParts,
  limit: number,
): Promise<Unconfirmed> {
  const { admin } = statements;
  const listed = (await read(admin.unconfirmed(limit + 1))).map((row) => text(row, "id"));
  const ids = listed.slice(0, limit);
  const confirmed = ids.length === 0 ? [] : await read(admin.confirmedBy(ids));
  const by = groupedBy(confirmed, "id");
  const summaries = new Map(
    (
      await search.summaries(
        ids.map((id) => ({ id })),
        false,
      )
    ).map((message) => [message.id, message]),
  );
  const consumers = groupedBy(await read(admin.lastConsumers(LOOKED_AT)), "message_type");
  const counted = await read(admin.countUnconfirmed(COUNTED_ROWS));
  const counts = counted.map((row) => ({
    type: text(row, "message_type"),
    overdue: integer(row, "overdue") === 1,
    count: integer(row, "count"),
  }));
  const sum = (overdue: boolean): number =>
    counts.reduce((total, each) => total + (each.overdue === overdue ? each.count : 0), 0);
  const isCut = { true: sum(true) >= COUNTED_ROWS, false: sum(false) >= COUNTED_ROWS };
  return {
    // In the order of the list; one that was confirmed meanwhile is not there any more.
    messages: ids.flatMap((id) => {
      const message = summaries.get(id);
      return message?.state === "sent" ? [{ ...message, confirmedBy: by.get(id) ?? [] }] : [];
    }),
    more: listed.length > limit,
    counts: counts.map((each) => ({ ...each, atLeast: isCut[`${each.overdue}`] })),
    consumers: [...consumers].map(([type, names]) => ({ type, consumers: names })),
  };
}

/** Consumers by this alias, in order. */
function groupedBy(rows: readonly Row[], alias: string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const row of rows) {
    const key = text(row, alias);
    groups.set(key, [...(groups.get(key) ?? []), text(row, "consumer")].toSorted());
  }
  return groups;
}
