import type { QueuedMessage } from "../../../queue/store.ts";
import type { AppendStatements } from "./statements.ts";

type TextColumn = readonly [column: string, field: "key" | "type" | "contentType" | "headers" | "orderingKey"];

const TEXTS: readonly TextColumn[] = [
  ["message_key", "key"],
  ["message_type", "type"],
  ["content_type", "contentType"],
  ["headers", "headers"],
  ["ordering_key", "orderingKey"],
];

export type MessageCounts = Parameters<AppendStatements["advance"]>[1];

/** All messages go to one partition, as in most appends. */
export function isOne(counts: MessageCounts): counts is readonly [MessageCounts[number]] {
  return counts.length === 1;
}

/** Columns that a message of the statement uses: NULL parameters cost both sides. */
export function textColumns(messages: readonly QueuedMessage[]): readonly TextColumn[] {
  return TEXTS.filter(([, field]) => messages.some((message) => message[field] !== null));
}

/** Whether a message of the statement is delayed. */
export function hasDelays(messages: readonly QueuedMessage[]): boolean {
  return messages.some(({ delayMs, deliverAtMs }) => delayMs !== null || deliverAtMs !== null);
}

/**
 * An INSERT with a row of parameters per message. `values` follow the partition; `deliverAt` takes
 * the two fields of `delay`, in order.
 */
export function parameterRows(
  { producer, rows }: Pick<Parameters<AppendStatements["insertMessages"]>[0], "producer" | "rows">,
  { delay, deliverAt }: { readonly deliverAt: string; readonly delay: readonly ("delayMs" | "deliverAtMs")[] },
): { readonly columns: string; readonly values: string; readonly params: readonly unknown[] } {
  const messages = rows.map(({ message }) => message);
  const texts = textColumns(messages);
  const delayed = hasDelays(messages);
  const params: unknown[] = [];
  for (const { id, message } of rows) {
    params.push(message.partition, id, message.body, producer.ip, producer.port, producer.group);
    for (const [, field] of texts) params.push(message[field]);
    if (delayed) for (const field of delay) params.push(message[field]);
  }
  const fixed = ["message_id", "message_data", "ip", "port", "producer_group", ...texts.map(([column]) => column)];
  return {
    columns: ["partition_no", ...fixed, ...(delayed ? ["deliver_at"] : [])].join(", "),
    values: [...fixed.map(() => "?"), ...(delayed ? [deliverAt] : [])].join(", "),
    params,
  };
}
