/**
 * Splits the messages of one topic into pieces of one write each.
 *
 * Messages without an ordering key form a pipeline of independent XADDs. Messages of one key
 * cannot: memory that is full for the first may be free for the second. A piece with several
 * messages of a key is a transaction (MULTI), which Redis takes or refuses whole: every error that
 * refuses an XADD (OOM, READONLY, NOREPLICAS, MISCONF, NOPERM) discards it all, and WRONGTYPE
 * applies to all, since it is one stream. The next piece waits for its reply.
 */

import type { OutgoingMessage } from "../broker.ts";
import type { Load } from "../publishing/call.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import { packedRequests } from "../publishing/packed-requests.ts";
import type { Placed } from "../publishing/results.ts";
import { fieldsOf } from "./entry.ts";
import type { Failure } from "./failures.ts";
import { failure } from "./failures.ts";

export interface Item extends Placed {
  readonly fields: readonly (string | Buffer)[];
  readonly bytes: number;
  readonly largestBytes: number;
}

export type Piece = Load<Item>;

export interface TopicPlan {
  /** First piece of each lane: pieces with ordering keys share one lane, others have their own. */
  readonly lanes: readonly Piece[];
  readonly refused: readonly { readonly placed: Placed; readonly failure: Failure }[];
}

export interface SizeLimits {
  readonly maxBodyBytes: number | undefined;
  readonly maxBulkBytes: number;
}

export interface PieceLimits {
  readonly messages: number;
  readonly bytes: number;
}

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
    // At most three bytes for each unit, so texts are only measured if it can matter.
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

export function needsTransaction(items: readonly Item[]): boolean {
  const keys = new Set<string>();
  for (const { orderingKey } of items) {
    if (orderingKey === undefined) continue;
    if (keys.has(orderingKey)) return true;
    keys.add(orderingKey);
  }
  return false;
}
