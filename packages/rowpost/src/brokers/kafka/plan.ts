/**
 * Turns the messages of one topic into produce requests.
 *
 * A lane is one partition. Its batches go one after the other: if one were refused while the next
 * one with the same key was stored, their order would change. Lanes run in parallel, and those of
 * one leader share a request.
 */

import type { Load } from "../publishing/call.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import type { Placed } from "../publishing/results.ts";
import { recordOf, type WireRecord } from "./carry.ts";
import { partitionOf } from "./partition.ts";

export interface Item extends Placed {
  readonly record: WireRecord;
  readonly partition: number;
  readonly bytes: number;
}

/**
 * Kafka's default limit of a batch is 1,048,588 bytes. A batch that is refused as too large is
 * halved.
 */
const MAX_BATCH_BYTES = 1_000_000;
const MAX_REQUEST_BYTES = 8_000_000;

export function planLanes(messages: readonly PlacedMessage[], partitions: number): Item[][][] {
  const lanes = new Map<number, { readonly batches: Item[][]; bytes: number }>();
  for (const { index, orderingKey, message } of messages) {
    const record = recordOf(message);
    const partition = partitionOf(record.key, partitions);
    let open = lanes.get(partition);
    if (open === undefined) {
      open = { batches: [[]], bytes: 0 };
      lanes.set(partition, open);
    }
    const { bytes } = record;
    if (open.bytes > 0 && open.bytes + bytes > MAX_BATCH_BYTES) {
      open.batches.push([]);
      open.bytes = 0;
    }
    open.batches.at(-1)?.push({ index, orderingKey, record, partition, bytes });
    open.bytes += bytes;
  }
  return [...lanes.values()].map(({ batches }) => batches);
}

export interface Request {
  readonly leader: number;
  readonly topic: string;
  readonly loads: Load<Item>[];
}

export function requestsOf(
  loads: readonly Load<Item>[],
  leaderOf: (topic: string, partition: number) => number,
): Request[] {
  const requests: Request[] = [];
  const open = new Map<string, { readonly request: Request; bytes: number }>();
  for (const load of loads) {
    const topic = load.destination;
    const leader = leaderOf(topic, load.items[0]?.partition ?? 0);
    const name = `${leader} ${topic}`;
    const known = open.get(name);
    if (known !== undefined && known.bytes + load.bytes <= MAX_REQUEST_BYTES) {
      known.request.loads.push(load);
      known.bytes += load.bytes;
    } else {
      const request = { leader, topic, loads: [load] };
      requests.push(request);
      open.set(name, { request, bytes: load.bytes });
    }
  }
  return requests;
}
