/**
 * Statements are prepared on MySQL and MariaDB only on connections of rowpost's own pool. A
 * prepared statement keeps the database in which it was prepared, even for DATABASE(), and drivers
 * cache it by text: on a user's connection, after a USE, the message would silently go into another
 * database's table. As text a message takes a quarter more of MariaDB's CPU (10.11), and no more of
 * MySQL's (9.7).
 */
import type { Statement } from "./executor.ts";
import { USER_STATEMENT } from "./own-transaction.ts";

/** Our statements with up to this many parameters are always prepared. */
const PREPARED_PARAMS = 24;

/**
 * Longer ones are prepared once their text repeats: each number of rows is its own text, and the
 * server holds at most 16,382 statements. Enqueuing 100 messages at once saves a fifth of the CPU
 * of both sides (MariaDB 10.11: 15 ms of the server's per 1,000 messages instead of 20, 8.2 ms of
 * the client's instead of 9.3).
 */
const LONG_PARAMS = 1_000;
const LONG_TIMES = 3;
/**
 * Most long texts prepared per process: one of 100 messages takes 0.5 MB of server memory per
 * connection.
 */
const LONG_TEXTS = 2;
const COUNTED_TEXTS = 32;

const longPrepared = new Set<string>();
const longTimes = new Map<string, number>();

/** Pooled connections on which the user has sent USE through `tx.query`. */
const moved = new WeakSet<object>();

/**
 * True for our statements with few parameters, and for longer ones that repeat, on our own pool's
 * `connection`.
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
