import type { OutgoingMessage } from "../broker.ts";
import type { Call, Load } from "./call.ts";
import type { Placed } from "./results.ts";

/** A message of a batch, and its place there. */
export interface PlacedMessage extends Placed {
  readonly message: OutgoingMessage;
}

/** What an adapter that hands over one message at a time knows of each before its turn. */
export interface LaneOptions {
  readonly destinationOf: (message: OutgoingMessage) => string;
  readonly bytesOf: (message: OutgoingMessage) => number;
}

/**
 * Starts a lane for each ordering key, and one for each message without: where the server may
 * refuse a message and take the next, the next of its key waits for the outcome of the one before.
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
  // Only now: a load that has its outcome at once needs to know what goes after it.
  for (const load of firsts) call.start(load);
}

/** One lane for all messages, in the order of the batch. */
export function startOneLane(call: Call<PlacedMessage>, batch: readonly OutgoingMessage[]): void {
  let first: Load<PlacedMessage> | undefined;
  for (const [index, message] of [...batch.entries()].reverse()) {
    const items = [{ index, orderingKey: message.orderingKey, message }];
    first = { destination: message.topic, items, bytes: 0, next: first };
  }
  if (first !== undefined) call.start(first);
}

/** The body's bytes on the wire. */
export function bodyBytes({ body }: OutgoingMessage): number {
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}

/** Starts a lane of requests, each with its messages. */
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
