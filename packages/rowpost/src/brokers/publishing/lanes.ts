import type { OutgoingMessage } from "../broker.ts";
import type { Call, Load } from "./call.ts";
import type { Placed } from "./results.ts";

export interface PlacedMessage extends Placed {
  readonly message: OutgoingMessage;
}

export interface LaneOptions {
  readonly destinationOf: (message: OutgoingMessage) => string;
  readonly bytesOf: (message: OutgoingMessage) => number;
}

/**
 * Starts a lane for each ordering key and one for each message without a key. For servers that may
 * refuse a message and accept the next: the next of its key waits for the outcome.
 */
export function startLanes(
  call: Call<PlacedMessage>,
  batch: readonly OutgoingMessage[],
  { destinationOf, bytesOf }: LaneOptions,
): void {
  const firsts: Load<PlacedMessage>[] = [];
  const lastOfKey = new Map<string, Load<PlacedMessage>>();
  for (const [index, message] of batch.entries()) {
    const { orderingKey } = message;
    const items = [{ index, orderingKey, message }];
    const load = { destination: destinationOf(message), items, bytes: bytesOf(message), next: undefined };
    const before = orderingKey === undefined ? undefined : lastOfKey.get(orderingKey);
    if (before === undefined) firsts.push(load);
    else before.next = load;
    if (orderingKey !== undefined) lastOfKey.set(orderingKey, load);
  }
  // Only after all are linked: a load settled at once needs to know the next of its lane.
  for (const load of firsts) call.start(load);
}

export function startOneLane(call: Call<PlacedMessage>, batch: readonly OutgoingMessage[]): void {
  let first: Load<PlacedMessage> | undefined;
  for (const [index, message] of [...batch.entries()].reverse()) {
    const items = [{ index, orderingKey: message.orderingKey, message }];
    first = { destination: message.topic, items, bytes: 0, next: first };
  }
  if (first !== undefined) call.start(first);
}

export function bodyBytes({ body }: OutgoingMessage): number {
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}

export function startRequests<Item extends Placed & { readonly bytes: number }>(
  call: Call<Item>,
  destination: string,
  requests: readonly (readonly Item[])[],
): void {
  let first: Load<Item> | undefined;
  for (let place = requests.length - 1; place >= 0; place -= 1) {
    const items = requests[place] ?? [];
    first = { destination, items, bytes: items.reduce((sum, { bytes }) => sum + bytes, 0), next: first };
  }
  if (first !== undefined) call.start(first);
}
