/**
 * From the messages of one topic to produce requests.
 *
 * A lane is one partition: its batches go one after the other, because a batch that was refused
 * while the next one of the same key was stored would turn their order around. Lanes go side by
 * side. A client that can say what became of each partition of a request gets the batches of one
 * leader together, one request for all; the other one gets a request for each.
 */

import { grouped } from "../../runtime/grouped.ts";
import type { Load } from "../publishing/call.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import type { Placed } from "../publishing/results.ts";
import { recordOf, type WireRecord } from "./carry.ts";
import { partitionOf } from "./partition.ts";

/** A message that is ready to go. */
export interface Item extends Placed {
  readonly record: WireRecord;
  readonly partition: number;
  readonly bytes: number;
}

/**
 * Most bytes of a batch of several records. Kafka takes batches of 1,048,588 bytes unless it, or
 * the topic, is configured otherwise; a batch above the limit is refused whole, and then sent in
 * halves.
 */
const MAX_BATCH_BYTES = 1_000_000;
/** Most bytes of one request, of several partitions. */
const MAX_REQUEST_BYTES = 8_000_000;

/** The lanes of these messages, each with its batches in their order. */
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

/**
 * Batches that share a request: those of one topic and leader, or each for itself. `leadersOf`
 * tells the node that leads each partition of a topic.
 */
export function groupLoads(
  loads: readonly Load<Item>[],
  together: boolean,
  leadersOf: (topic: string) => readonly number[],
): Load<Item>[][] {
  if (!together) return loads.map((load) => [load]);
  const leaderOf = ({ destination, items: [item] }: Load<Item>): string =>
    `${leadersOf(destination)[item?.partition ?? 0] ?? -1} ${destination}`;
  return [...grouped(loads, leaderOf).values()].flatMap(requestsOf);
}

/** As few requests as their size allows. */
function requestsOf(loads: readonly Load<Item>[]): Load<Item>[][] {
  const requests: Load<Item>[][] = [];
  let request: Load<Item>[] = [];
  let bytes = 0;
  for (const load of loads) {
    if (request.length === 0 || bytes + load.bytes > MAX_REQUEST_BYTES) {
      request = [];
      requests.push(request);
      bytes = 0;
    }
    request.push(load);
    bytes += load.bytes;
  }
  return requests;
}
