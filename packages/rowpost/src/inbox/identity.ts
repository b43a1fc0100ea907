/** Identity of a message on the consuming side. */
import { textFault } from "../message/check-text.ts";
import { InvalidMessageError } from "../runtime/errors.ts";

/**
 * A message as a consumer knows it. Type and key are its identity, as in the local message table
 * and the headers `rowpost-type` and `rowpost-key`. The rest is stored for people and for
 * reconciling.
 */
export interface ReceivedMessage {
  /** Message type. 1 to 128 characters, compared byte for byte. */
  readonly type: string;
  /** Message key. 1 to 255 characters, compared byte for byte. */
  readonly key: string;
  /** The broker's id of this copy; equals the receipt in `message_id` where possible. */
  readonly id?: string | undefined;
  /** The relay's claim that produced this copy: the header `rowpost-attempt`. */
  readonly attempt?: number | undefined;
  /** Topic of the copy. */
  readonly topic?: string | undefined;
}

/** Limits of the inbox columns, in characters. */
const LIMITS = { consumer: 64, type: 128, key: 255, topic: 255, id: 255, handledBy: 128 } as const;

/**
 * Rejects text that a database would cut, pad or refuse. A trailing blank counts (rule:
 * exact-bytes).
 */
export function checkPart(name: "consumer" | "type" | "key", value: unknown): string {
  const limit = LIMITS[name];
  const what = name === "consumer" ? "inbox: consumer" : `inbox: ${name} of the message`;
  if (typeof value !== "string") {
    throw new InvalidMessageError(`${what} must be a string of 1 to ${limit} characters, not ${kindOf(value)}`);
  }
  if (value === "") throw new InvalidMessageError(`${what} is empty; it must have 1 to ${limit} characters`);
  if (value.length > limit && lengthOf(value) > limit) {
    throw new InvalidMessageError(`${what} has ${lengthOf(value)} characters; at most ${limit} fit`);
  }
  const fault = textFault(value);
  if (fault !== undefined) throw new InvalidMessageError(`${what} ${fault}`);
  return value;
}

/** A note that does not fit must not prevent the handling. */
export function note(name: "topic" | "id" | "handledBy", value: unknown): string | null {
  if (typeof value !== "string" || value === "" || textFault(value) !== undefined) return null;
  return value.length <= LIMITS[name] ? value : Array.from(value).slice(0, LIMITS[name]).join("");
}

/** Null: other programs may send anything. */
export function attemptOf(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 31 ? value : null;
}

function lengthOf(value: string): number {
  return Array.from(value).length;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
