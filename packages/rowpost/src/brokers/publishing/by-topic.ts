import { grouped } from "../../runtime/grouped.ts";
import type { OutgoingMessage } from "../broker.ts";
import type { PlacedMessage } from "./lanes.ts";

/** Topics in order of their first message, messages in order of the batch. */
export function byTopic(batch: readonly OutgoingMessage[]): Map<string, PlacedMessage[]> {
  const placed = batch.map((message, index) => ({ index, orderingKey: message.orderingKey, message }));
  return grouped(placed, ({ message }) => message.topic);
}
