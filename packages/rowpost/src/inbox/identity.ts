/** What a message is known by on the consuming side. */
import { textFault } from "../message/check-text.ts";
import { InvalidMessageError } from "../runtime/errors.ts";

/**
 * A message as a consumer knows it. Type and key are its identity, the same as in the local message
 * table: those of the headers `rowpost-type` and `rowpost-key`. The rest is kept with it, for
 * people and for reconciling.
 */
export interface ReceivedMessage {
  /** Message type. 1 to 128 characters, compared byte for byte. */
  readonly type: string;
  /** Message key. 1 to 255 characters, compared byte for byte. */
  readonly key: string;
  /** What the broker calls this copy; the same as the receipt in `message_id`, where it can be. */
  readonly id?: string | undefined;
  /** Which claim of the relay this copy comes from: the header `rowpost-attempt`. */
  readonly attempt?: number | undefined;
  /** Topic that it came from. */
  readonly topic?: string | undefined;
}

/** Characters that fit the columns of the inbox. */
const LIMITS = { consumer: 64, type: 128, key: 255, topic: 255, id: 255, handledBy: 128 } as const;

/**
 * Part of an identity: nothing that a database would cut, pad or refuse. A blank at the end is part
 * of it: the columns compare bytes (rule: exact-bytes).
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

/** Beside the identity nothing is refused: a note that does not fit is no reason not to handle. */
export function note(name: "topic" | "id" | "handledBy", value: unknown): string | null {
  if (typeof value !== "string" || value === "" || textFault(value) !== undefined) return null;
  return value.length <= LIMITS[name] ? value : Array.from(value).slice(0, LIMITS[name]).join("");
}

/** The number of an attempt, or null: another program's may be anything. */
export function attemptOf(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 31 ? value : null;
}

function lengthOf(value: string): number {
  return Array.from(value).length;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
