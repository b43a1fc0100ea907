/** Columns of an append's INSERT. */
import type { QueuedMessage } from "../../../queue/store.ts";

type TextColumn = readonly [column: string, field: "key" | "type" | "contentType" | "headers" | "orderingKey"];

const TEXTS: readonly TextColumn[] = [
  ["message_key", "key"],
  ["message_type", "type"],
  ["content_type", "contentType"],
  ["headers", "headers"],
  ["ordering_key", "orderingKey"],
];

/** Those that some message of the statement has: NULLs as parameters cost both sides. */
export function textColumns(messages: readonly QueuedMessage[]): readonly TextColumn[] {
  return TEXTS.filter(([, field]) => messages.some((message) => message[field] !== null));
}

/** Whether some message of the statement comes later. */
export function hasDelays(messages: readonly QueuedMessage[]): boolean {
  return messages.some(({ delayMs, deliverAtMs }) => delayMs !== null || deliverAtMs !== null);
}
