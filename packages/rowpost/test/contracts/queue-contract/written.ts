/** What stands in the tables after a settle: records and redeliveries. */

import { recordTable } from "../../../src/databases/sql/queue/names.ts";
import { integer, type Row, text, textOrNull } from "../../../src/databases/sql/rows.ts";
import type { StoredRedelivery } from "../../../src/queue/groups/requests.ts";
import type { QueueCaseContext } from "./context.ts";

/** A row of a record table. */
export interface SeenRecord {
  readonly id: string;
  readonly group: string;
  readonly round: number;
  readonly attempt: number;
  readonly result: number;
  readonly lastId: string | null;
  readonly messages: number;
}

/** Records of a month, read by hand, in order of ids and attempts. */
export async function recordsOf(
  { rows, topic, month, dialect }: QueueCaseContext,
  of: number = month,
): Promise<SeenRecord[]> {
  const asText = (column: string): string => `CAST(${column} AS ${dialect.textType})`;
  const found = await rows(
    `SELECT ${asText("message_id")} AS id, consumer_group_id AS of_group, round, attempt, result, ${asText("last_message_id")} AS last_id, messages
  FROM ${recordTable(topic, of)} ORDER BY message_id, consumer_group_id, round, attempt`,
  );
  return found.map((row: Row) => ({
    id: text(row, "id"),
    group: text(row, "of_group"),
    round: integer(row, "round"),
    attempt: integer(row, "attempt"),
    result: integer(row, "result"),
    lastId: textOrNull(row, "last_id"),
    messages: integer(row, "messages"),
  }));
}

/** All that a group gets again, or has set aside. */
export async function redeliveriesOf(
  { groups, topic }: QueueCaseContext,
  group = "billing",
): Promise<StoredRedelivery[]> {
  return await groups.page({ topic, group }, { partition: -1, id: "0" }, 1_000);
}

/** Where the group stands in partition 0. */
export async function placeOf(context: QueueCaseContext, group = "billing", partition = 0): Promise<string> {
  const all = await context.groups.partitions(context.topic, group);
  return all.find((each) => each.partition === partition)?.nextId ?? "no such group";
}
