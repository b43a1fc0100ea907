/**
 * From the messages of one topic to pieces that go out in one write each.
 *
 * Messages without an ordering key go as one pipeline of XADDs: each has its own fate. Messages of
 * equal keys must not: memory that is full for the first may be free for the second. Where a piece
 * holds several messages of one key it is a transaction (MULTI), which Redis takes or refuses
 * whole: whatever can refuse an XADD (OOM, READONLY, NOREPLICAS, MISCONF, NOPERM) discards all of
 * it, and WRONGTYPE is true of all of it, since it is one stream. The next piece waits for the
 * answer to this one.
 */

import type { OutgoingMessage } from "../broker.ts";
import type { Load } from "../publishing/call.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import { packedRequests } from "../publishing/packed-requests.ts";
import type { Placed } from "../publishing/results.ts";
import { fieldsOf } from "./entry.ts";
import type { Failure } from "./failures.ts";
import { failure } from "./failures.ts";

/** A message that goes out. */
export interface Item extends Placed {
  readonly fields: readonly (string | Buffer)[];
  /** About the bytes on the wire. */
  readonly bytes: number;
  /** Exact size of its largest name or value. */
  readonly largestBytes: number;
}

/** Messages of one write. */
export type Piece = Load<Item>;

export interface TopicPlan {
  /** The first of each lane: the pieces with ordering keys are one, each other piece is its own. */
  readonly lanes: readonly Piece[];
  readonly refused: readonly { readonly placed: Placed; readonly failure: Failure }[];
}

/** What is too large for the server or the user. */
export interface SizeLimits {
  readonly maxBodyBytes: number | undefined;
  /** Of one field. */
  readonly maxBulkBytes: number;
}

/** Bounds of a piece. Chosen in index.ts. */
export interface PieceLimits {
  readonly messages: number;
  readonly bytes: number;
}

/** Redis' framing around the fields of a message, roughly. */
const FRAME_BYTES = 128;

export function planTopic(
  topic: string,
  messages: readonly PlacedMessage[],
  sizes: SizeLimits,
  limits: PieceLimits,
): TopicPlan {
  const refused: { placed: Placed; failure: Failure }[] = [];
  const unkeyed: Item[] = [];
  const keyed: Item[] = [];
  for (const placed of messages) {
    const item = itemOf(placed);
    const tooLarge = sizeFailure(placed.message, item, sizes);
    if (tooLarge !== undefined) refused.push({ placed, failure: tooLarge });
    else (placed.orderingKey === undefined ? unkeyed : keyed).push(item);
  }
  const [first, ...rest] = piecesOf(topic, keyed, limits);
  let last = first;
  for (const piece of rest) {
    if (last !== undefined) last.next = piece;
    last = piece;
  }
  return { lanes: [...piecesOf(topic, unkeyed, limits), ...(first === undefined ? [] : [first])], refused };
}

function itemOf({ index, orderingKey, message }: PlacedMessage): Item {
  const fields = fieldsOf(message);
  let bytes = FRAME_BYTES;
  let largestBytes = 0;
  for (const field of fields) {
    // At most three bytes for each unit; texts are counted only where it can matter.
    const isKnown = typeof field === "object" || field.length * 3 <= largestBytes;
    const size = isKnown ? field.length : Buffer.byteLength(field);
    bytes += size;
    if (size > largestBytes) largestBytes = size;
  }
  return { index, orderingKey, fields, bytes, largestBytes };
}

function sizeFailure({ body }: OutgoingMessage, item: Item, sizes: SizeLimits): Failure | undefined {
  const { maxBodyBytes = Number.POSITIVE_INFINITY, maxBulkBytes } = sizes;
  if (item.largestBytes <= maxBodyBytes && item.largestBytes <= maxBulkBytes) return undefined;
  const bodyBytes = Buffer.byteLength(body);
  if (bodyBytes > maxBodyBytes) return tooLarge(`body of ${bodyBytes} bytes, the limit is ${maxBodyBytes}`);
  if (item.largestBytes <= maxBulkBytes) return undefined;
  return tooLarge(`${item.largestBytes} bytes in one field, and the server's proto-max-bulk-len is ${maxBulkBytes}`);
}

function tooLarge(reason: string): Failure {
  return failure("BODY_TOO_LARGE", reason, { scope: "message", retriable: false });
}

function piecesOf(topic: string, items: readonly Item[], limits: PieceLimits): Piece[] {
  return packedRequests(items, { items: limits.messages, bytes: limits.bytes }).map((piece) => ({
    destination: topic,
    items: piece,
    bytes: piece.reduce((sum, { bytes }) => sum + bytes, 0),
    next: undefined,
  }));
}

/** Whether a key is there twice. */
export function needsTransaction(items: readonly Item[]): boolean {
  const keys = new Set<string>();
  for (const { orderingKey } of items) {
    if (orderingKey === undefined) continue;
    if (keys.has(orderingKey)) return true;
    keys.add(orderingKey);
  }
  return false;
}
