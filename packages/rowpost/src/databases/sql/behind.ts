/**
 * `next_retry_at` marks rows that are set behind a head message: {@link BEHIND_BASE} plus the
 * head's id in milliseconds. Each head has its own instant, so the index on (state, next_retry_at)
 * finds its rows, and no scan meets them. For people: a time after the year 3000 means that the row
 * waits behind the message with that id.
 *
 * A hint only. Bringing a row back is always safe, because each batch reads the order of keys from
 * the table.
 */

/** First of those instants; every dialect reads it as UTC. */
export const BEHIND_BASE = "3000-01-01 00:00:00.000";

const BASE_MS = Date.parse("3000-01-01T00:00:00.000Z");
/** Instants of larger ids would exceed the year 9999, so no row is set behind such a message. */
const LARGEST_HEAD = 200_000_000_000_000;

/** `YYYY-MM-DD HH:MM:SS.mmm` for rows behind this message; undefined if its id is too large. */
export function behindInstant(headId: string): string | undefined {
  const head = Number(headId);
  if (head > LARGEST_HEAD) return undefined;
  return new Date(BASE_MS + head).toISOString().replace("T", " ").replace("Z", "");
}

/** The message that such a `next_retry_at` stands for; undefined for any other time. */
export function headOfInstant(instant: string | null): string | undefined {
  if (instant === null) return undefined;
  const head = Date.parse(instant.replace(" ", "T").replace(/Z?$/, "Z")) - BASE_MS;
  return head > 0 && head <= LARGEST_HEAD ? String(head) : undefined;
}
