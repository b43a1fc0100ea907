/**
 * From the messages of one topic to pieces that go out in one write each.
 *
 * Messages without an ordering key go as one pipeline of XADDs: each has its own fate. Messages of equal keys must not: memory that is full for the
 * first may be free for the second. Where a piece holds several messages of one key it is a transaction (MULTI), which Redis takes or refuses
 * whole: whatever can refuse an XADD (OOM, READONLY, NOREPLICAS, MISCONF, NOPERM) discards all of it, and WRONGTYPE is true of all of it,
 * since it is one stream. The next piece waits for the answer to this one.
 */

import type { OutgoingMessage } from "../broker.ts";
import { fieldsOf } from "./entry.ts";
import type { Failure } from "./failures.ts";
import { failure } from "./failures.ts";

/** A message that goes out. */
export interface Item {
  /** Its place in the call's batch. */
  readonly index: number;
  readonly orderingKey: string | undefined;
  readonly fields: readonly (string | Buffer)[];
  /** About the bytes on the wire. */
  readonly bytes: number;
  /** Exact size of its largest name or value. */
  readonly largestBytes: number;
}

/** Messages of one write. */
export interface Piece {
  readonly items: readonly Item[];
  readonly bytes: number;
}

export interface TopicPlan {
  /** Go side by side. */
  readonly unkeyed: readonly Piece[];
  /** Go one after the other. */
  readonly keyed: readonly Piece[];
  readonly refused: readonly { readonly index: number; readonly failure: Failure }[];
}

/** A message with its place in the batch. */
export interface Indexed {
  readonly index: number;
  readonly message: OutgoingMessage;
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

export function planTopic(messages: readonly Indexed[], sizes: SizeLimits, limits: PieceLimits): TopicPlan {
  const refused: { index: number; failure: Failure }[] = [];
  const unkeyed: Item[] = [];
  const keyed: Item[] = [];
  // Behind a refused message nothing of its key is sent.
  const blocked = new Set<string>();
  for (const { index, message } of messages) {
    const { orderingKey } = message;
    if (orderingKey !== undefined && blocked.has(orderingKey)) continue;
    const item = itemOf(index, message);
    const tooLarge = sizeFailure(message, item, sizes);
    if (tooLarge === undefined) {
      (orderingKey === undefined ? unkeyed : keyed).push(item);
      continue;
    }
    refused.push({ index, failure: tooLarge });
    if (orderingKey !== undefined) blocked.add(orderingKey);
  }
  return { unkeyed: piecesOf(unkeyed, limits), keyed: piecesOf(keyed, limits), refused };
}

function itemOf(index: number, message: OutgoingMessage): Item {
  const fields = fieldsOf(message);
  let bytes = FRAME_BYTES;
  let largestBytes = 0;
  for (const field of fields) {
    // A character has one to three bytes for each of its units; texts are counted only where it can matter.
    const isKnown = typeof field === "object" || field.length * 3 <= largestBytes;
    const size = isKnown ? field.length : Buffer.byteLength(field);
    bytes += size;
    if (size > largestBytes) largestBytes = size;
  }
  return { index, orderingKey: message.orderingKey, fields, bytes, largestBytes };
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

function piecesOf(items: readonly Item[], limits: PieceLimits): Piece[] {
  const pieces: Piece[] = [];
  let piece: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const isFull = piece.length === limits.messages || bytes + item.bytes > limits.bytes;
    if (piece.length > 0 && isFull) {
      pieces.push({ items: piece, bytes });
      piece = [];
      bytes = 0;
    }
    piece.push(item);
    bytes += item.bytes;
  }
  if (piece.length > 0) pieces.push({ items: piece, bytes });
  return pieces;
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
