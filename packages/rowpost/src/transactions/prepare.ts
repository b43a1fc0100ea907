/**
 * Which statements are prepared on MySQL and MariaDB, and where: only on connections of rowpost's
 * own pool. A prepared statement keeps the table of the database in which it was prepared, and
 * drivers keep it by its text; on a connection of the user's, which may have sent USE since, the
 * message would go into the table of another database, without an error. Nor can it look where it
 * is: in it DATABASE() is that of the preparation too. As text a message takes a quarter more of
 * MariaDB's CPU (10.11), and no more of MySQL's (9.7).
 */
import type { Statement } from "./executor.ts";
import { USER_STATEMENT } from "./own-transaction.ts";

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

/** Connections on which the user has sent USE, through `tx.query`: they stay in the pool. */
const moved = new WeakSet<object>();

/**
 * True for a statement of ours with few parameters, and for a longer one that comes again and
 * again, on a `connection` of our own pool.
 */
export function isPrepared({ name, params, text }: Statement, connection: object): boolean {
  if (name === USER_STATEMENT && /\buse\b/i.test(text)) moved.add(connection);
  if (name === USER_STATEMENT || params.length === 0 || params.length > LONG_PARAMS) return false;
  if (moved.has(connection)) return false;
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
