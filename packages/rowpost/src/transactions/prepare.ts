/** Which statements are worth a prepared statement on MySQL and MariaDB: it saves a third of the client's CPU for one row, and costs room in the server. */
import type { Statement } from "./executor.ts";
import { USER_STATEMENT } from "./own-transaction.ts";
import { returnsRows } from "./shape.ts";

/**
 * Up to this many parameters a statement of ours is prepared; above, it is sent as text, because each number of rows is a statement of its own
 * and the server holds 16,382 of them at most, for all connections together.
 */
const PREPARED_PARAMS = 24;

/** True for a statement of ours with few parameters. */
export function isPrepared({ name, params }: Statement): boolean {
  return name !== USER_STATEMENT && params.length > 0 && params.length <= PREPARED_PARAMS;
}

/** Texts of the user's that were seen last. */
const seenTexts = new Set<string>();
const SEEN_TEXTS = 200;

/**
 * True for a statement of the user's that comes again and again and means the same either way. Others go as text: a list as a parameter is spliced
 * into text only, MySQL refuses a number as LIMIT of a prepared statement, and a FLOAT comes back rounded otherwise.
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
