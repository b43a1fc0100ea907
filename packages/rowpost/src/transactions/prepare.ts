/**
 * Which statements are worth a prepared statement on MySQL and MariaDB: it saves a third of the
 * client's CPU for one row, and costs room in the server.
 */
import type { Statement } from "./executor.ts";
import { USER_STATEMENT } from "./own-transaction.ts";
import { returnsRows } from "./shape.ts";

/** Up to this many parameters a statement of ours is always prepared. */
const PREPARED_PARAMS = 24;

/**
 * Longer ones are prepared when their text comes again and again: each number of rows is a text of
 * its own, and the server holds 16,382 statements at most, for all connections together. A program
 * that always enqueues 100 messages at once gains a fifth of the CPU of both sides (MariaDB 10.11:
 * 15 ms of the server's per 1,000 messages instead of 20, 8.2 ms of the client's instead of 9.3).
 */
const LONG_PARAMS = 1_000;
/** A text is worth it from this time on. */
const LONG_TIMES = 3;
/**
 * Texts in a process that ever become prepared ones: one of 100 messages takes 0.5 MB of the
 * server's memory for each connection.
 */
const LONG_TEXTS = 2;
/** Texts whose times are counted. */
const COUNTED_TEXTS = 32;

const longPrepared = new Set<string>();
const longTimes = new Map<string, number>();

/**
 * True for a statement of ours with few parameters, and for a longer one that comes again and
 * again.
 */
export function isPrepared({ name, params, text }: Statement): boolean {
  if (name === USER_STATEMENT || params.length === 0 || params.length > LONG_PARAMS) return false;
  return params.length <= PREPARED_PARAMS || longPrepared.has(text) || becomesPrepared(text);
}

function becomesPrepared(text: string): boolean {
  if (longPrepared.size >= LONG_TEXTS) return false;
  const times = (longTimes.get(text) ?? 0) + 1;
  if (times < LONG_TIMES) {
    if (longTimes.size >= COUNTED_TEXTS) longTimes.clear();
    longTimes.set(text, times);
    return false;
  }
  longTimes.delete(text);
  longPrepared.add(text);
  return true;
}

/** Texts of the user's that were seen last. */
const seenTexts = new Set<string>();
const SEEN_TEXTS = 200;

/**
 * True for a statement of the user's that comes again and again and means the same either way.
 * Others go as text: a list as a parameter is spliced into text only, MySQL refuses a number as
 * LIMIT of a prepared statement, and a FLOAT comes back rounded otherwise.
 */
export function isPreparedForUser({ params, text }: Statement): boolean {
  if (params.length === 0 || params.length > PREPARED_PARAMS) return false;
  if (!/^\s*(?:insert|update|delete|replace)\b/i.test(text) || /\blimit\b/i.test(text) || returnsRows(text))
    return false;
  if (!params.every((param) => param === null || typeof param === "string" || typeof param === "number")) return false;
  if (seenTexts.delete(text)) {
    seenTexts.add(text);
    return true;
  }
  seenTexts.add(text);
  if (seenTexts.size > SEEN_TEXTS) {
    const [oldest] = seenTexts;
    if (oldest !== undefined) seenTexts.delete(oldest);
  }
  return false;
}
