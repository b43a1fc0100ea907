/**
 * From the messages of one topic to requests: the topic's type decides how each goes out, and lanes
 * decide what waits for what.
 *
 * - NORMAL: many messages in one request, up to ten times the rate of single ones. The server
 *   stores such a request whole or not at all, in one queue, so the messages of an ordering key may
 *   share one; the request with a key's next messages waits for its answer.
 * - FIFO: one message in each request, because the server ignores the group of a larger one, and
 *   the next of its group only after the answer: requests of one group side by side were stored out
 *   of order.
 */

import type { OutgoingMessage } from "../broker.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import type { Placed } from "../publishing/results.ts";
import { groupOf, indexKeyOf, messageIdOf, propertiesOf, tagOf } from "./carry.ts";
import { type Failure, messageFailure } from "./rules.ts";
import { messageBytes, WIRE_FIFO, WIRE_NORMAL, type WireMessage } from "./wire.ts";

export interface Item extends Placed {
  readonly wire: WireMessage;
  readonly bytes: number;
}

/** Requests of one lane go one after the other, lanes in parallel. */
export type Lane = readonly (readonly Item[])[];

export interface Plan {
  readonly lanes: Lane[];
  readonly refused: { readonly placed: Placed; readonly failure: Failure }[];
  /** Number of messages with an ordering key that this topic cannot keep in order. */
  readonly unordered: number;
}

export interface PlanOptions {
  readonly topic: string;
  readonly accepts: ReadonlySet<string>;
  readonly batchSize: number;
  readonly maxRequestBytes: number;
  readonly maxBodyBytes: number | undefined;
  /** Fail messages with a key on an unordered topic instead of publishing them one by one. */
  readonly refuseUnordered: boolean;
}

export function planTopic(messages: readonly PlacedMessage[], options: PlanOptions): Plan {
  const lanes: Lane[] = [];
  const refused: Plan["refused"] = [];
  const units: Item[][] = [];
  const unitOfKey = new Map<string, Item[]>();
  const singles = new Map<string, Item[][]>();
  let unordered = 0;

  for (const { index, orderingKey, message } of messages) {
    const wire = wireOf(message, options);
    if ("scope" in wire) {
      refused.push({ placed: { index, orderingKey }, failure: wire });
      continue;
    }
    const item: Item = { index, orderingKey, wire, bytes: messageBytes(wire) };
    if (orderingKey !== undefined && wire.messageType !== WIRE_FIFO) unordered += 1;
    if (wire.group !== undefined) {
      append(singles, wire.group, [item]);
    } else if (orderingKey === undefined) {
      units.push([item]);
    } else {
      const unit = unitOfKey.get(orderingKey);
      if (unit !== undefined) {
        unit.push(item);
        continue;
      }
      const first = [item];
      unitOfKey.set(orderingKey, first);
      units.push(first);
    }
  }
  lanes.push(...singles.values(), ...packUnits(units, options));
  return { lanes, refused, unordered };
}

function append(lists: Map<string, Item[][]>, name: string, request: Item[]): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [request]);
  else list.push(request);
}

/** Fills requests with whole units. A unit that must be split continues in the same lane. */
function packUnits(units: readonly (readonly Item[])[], options: PlanOptions): Lane[] {
  const lanes: Item[][][] = [];
  let request: Item[] = [];
  let bytes = 0;
  const open = (continues: boolean): void => {
    request = [];
    bytes = 0;
    const lane = lanes.at(-1);
    if (continues && lane !== undefined) lane.push(request);
    else lanes.push([request]);
  };
  const full = (more: number, moreBytes: number): boolean =>
    request.length + more > options.batchSize || bytes + moreBytes > options.maxRequestBytes;

  for (const unit of units) {
    const unitBytes = unit.reduce((sum, item) => sum + item.bytes, 0);
    if (lanes.length === 0 || full(unit.length, unitBytes)) open(false);
    for (const item of unit) {
      if (request.length > 0 && full(1, item.bytes)) open(true);
      request.push(item);
      bytes += item.bytes;
    }
  }
  return lanes;
}

function wireOf(message: OutgoingMessage, options: PlanOptions): WireMessage | Failure {
  const kind = kindOf(message, options);
  if ("scope" in kind) return kind;
  const { body } = message;
  const bodyBytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  if (options.maxBodyBytes !== undefined && bodyBytes > options.maxBodyBytes) {
    const reason = `the body has ${bodyBytes} bytes; the server takes at most ${options.maxBodyBytes}`;
    return messageFailure("MESSAGE_BODY_TOO_LARGE", reason);
  }
  const properties = propertiesOf(message);
  if ("scope" in properties) return properties;
  return {
    messageId: messageIdOf(message.type, message.key),
    tag: tagOf(message.type),
    key: indexKeyOf(message.key),
    properties,
    body,
    bodyBytes,
    ...kind,
  };
}

type Kind = Pick<WireMessage, "messageType" | "group">;

const NORMAL: Kind = { messageType: WIRE_NORMAL, group: undefined };

function kindOf(
  { orderingKey, key }: OutgoingMessage,
  { accepts, refuseUnordered, topic }: PlanOptions,
): Kind | Failure {
  if (orderingKey !== undefined && accepts.has("FIFO")) {
    return { messageType: WIRE_FIFO, group: groupOf(orderingKey) };
  }
  if (orderingKey !== undefined && refuseUnordered) {
    return conflict(
      `topic ${topic} takes ${list(accepts)} messages and keeps no order; create it with message.type=FIFO, or leave out the ordering key`,
    );
  }
  if (accepts.has("NORMAL") || accepts.has("MESSAGE_TYPE_UNSPECIFIED")) return NORMAL;
  // It must have a group; the key spreads messages over the queues.
  if (accepts.has("FIFO")) return { messageType: WIRE_FIFO, group: groupOf(key) };
  return conflict(
    `topic ${topic} takes ${list(accepts)} messages only; create it with message.type=NORMAL, FIFO or MIXED`,
  );
}

function conflict(reason: string): Failure {
  return messageFailure("MESSAGE_PROPERTY_CONFLICT_WITH_TYPE", reason, true);
}

function list(accepts: ReadonlySet<string>): string {
  return accepts.size === 0 ? "no" : [...accepts].join(", ");
}
