/**
 * From the messages of one topic to produce requests.
 *
 * A lane is one partition: its batches go one after the other, because a batch that was refused while the next one of the same key was
 * stored would turn their order around. Lanes go side by side. A client that can say what became of each partition of a request gets the lanes of
 * one leader together, one request for all; the other one gets a request for each lane.
 */

import type { OutgoingMessage } from "../broker.ts";
import { recordOf, type WireRecord } from "./carry.ts";
import { partitionOf } from "./partition.ts";

/** A message's place in the batch given to `publish`, and its key. */
export interface Place {
  readonly index: number;
  readonly orderingKey: string | undefined;
}

/** A message and its place. */
export interface Indexed extends Place {
  readonly message: OutgoingMessage;
}

/** A message that is ready to go. */
export interface Item extends Place {
  readonly record: WireRecord;
}

/** What is left to send to one partition: batches in their order. */
export interface Lane {
  readonly partition: number;
  readonly batches: Item[][];
}

/**
 * Most bytes of a batch of several records. Kafka takes batches of 1,048,588 bytes unless it, or the topic, is configured otherwise; a batch
 * above the limit is refused whole, and then sent in halves.
 */
const MAX_BATCH_BYTES = 1_000_000;

/** The lanes of these messages. `leaders` holds the node that leads each partition. */
export function planLanes(messages: readonly Indexed[], leaders: readonly number[]): Lane[] {
  const lanes = new Map<number, { readonly lane: Lane; bytes: number }>();
  for (const { index, orderingKey, message } of messages) {
    const record = recordOf(message);
    const partition = partitionOf(record.key, leaders.length);
    let open = lanes.get(partition);
    if (open === undefined) {
      open = { lane: { partition, batches: [[]] }, bytes: 0 };
      lanes.set(partition, open);
    }
    const { batches } = open.lane;
    if (open.bytes > 0 && open.bytes + record.bytes > MAX_BATCH_BYTES) {
      batches.push([]);
      open.bytes = 0;
    }
    batches.at(-1)?.push({ index, orderingKey, record });
    open.bytes += record.bytes;
  }
  return [...lanes.values()].map(({ lane }) => lane);
}

/** Lanes that share their requests: those of one leader, or each for itself. */
export function groupLanes(lanes: readonly Lane[], leaders: readonly number[], together: boolean): Lane[][] {
  if (!together) return lanes.map((lane) => [lane]);
  const groups = new Map<number, Lane[]>();
  for (const lane of lanes) {
    const leader = leaders[lane.partition] ?? -1;
    const group = groups.get(leader);
    if (group === undefined) groups.set(leader, [lane]);
    else group.push(lane);
  }
  return [...groups.values()];
}
