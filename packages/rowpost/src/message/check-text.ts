/** Checks that every database stores a text and returns it unchanged. */
import { InvalidMessageError } from "../runtime/errors.ts";

export function invalid(name: string, what: string, cause?: unknown): InvalidMessageError {
  return new InvalidMessageError(`${name}: ${what}`, { cause });
}

/**
 * Why a text column cannot store it, if so: PostgreSQL takes no NUL, and half a surrogate pair
 * would come back as U+FFFD.
 */
export function textFault(text: string): string | undefined {
  if (text.includes("\0")) return "has a NUL character";
  if (/\p{Surrogate}/u.test(text)) return "has half a surrogate pair";
  return undefined;
}

/**
 * Identities compare byte for byte (rule: exact-bytes), so anything a database may fold or cut is
 * refused.
 */
export function checkText(name: string, field: string, value: unknown, limit: number): string {
  if (typeof value !== "string") throw invalid(name, `${field} must be a string, not ${typeof value}`);
  if (value === "") throw invalid(name, `${field} is empty; it must have 1 to ${limit} characters`);
  // Outside the basic plane a character is two units in JavaScript, one in a VARCHAR.
  if (value.length > limit && (value.length > 2 * limit || countCharacters(value) > limit)) {
    throw invalid(name, `${field} has ${countCharacters(value)} characters; at most ${limit} fit`);
  }
  if (/\s$/.test(value)) throw invalid(name, `${field} ends in a blank, which a database may ignore: "${value}"`);
  const fault = textFault(value);
  if (fault !== undefined) throw invalid(name, `${field} ${fault}`);
  return value;
}

function countCharacters(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}
