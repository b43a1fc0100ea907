/** Followers of a blocked or busy ordering key: out of the scan once, and back (sql/behind.ts). */

import { inIdOrder } from "../../runtime/compare-ids.ts";
import type { HousekeepingStatements } from "../sql/statements.ts";
import {
  fenceClause,
  fenceParams,
  instant,
  isoText,
  type Names,
  NOW,
  numberArray,
  textArray,
  tokenParams,
  tokenSource,
} from "./names.ts";

/** Statements that set behind and bring back. */
export function behindStatements(names: Names): Pick<HousekeepingStatements, "setBehind" | "bringBack" | "nextBehind"> {
  const setBehind = setBehindText(names);
  const bringBack = bringBackText(names);
  const nextBehind = nextBehindText(names);
  return {
    setBehind: ({ fence, rows }) => {
      const sorted = inIdOrder(rows);
      return {
        name: "setBehind",
        text: setBehind,
        params: [
          ...fenceParams(fence, sorted),
          ...tokenParams(sorted),
          numberArray(sorted.map((row) => row.headId)),
          textArray(sorted.map((row) => row.instant)),
        ],
      };
    },
    bringBack: ({ instants, rows, skip }) => ({
      name: "bringBack",
      text: bringBack,
      params: [textArray(instants), rows, skip],
    }),
    nextBehind: (afterInstant) => ({ name: "nextBehind", text: nextBehind, params: [afterInstant] }),
  };
}

/**
 * Locks the lease rows (key share), then the heads that still stand there and nobody holds, then
 * the followers that nobody holds. The head's lock is what makes it safe: a settle of the head
 * either has committed, then it is not unfinished any more, or holds it, then it is passed over
 * here, or waits for us, and finds the followers when it brings them back. A plain read would see
 * the head as it was before a settle that commits a moment later, and that settle would not see our
 * followers: they would stand behind nobody. If we die right after it, they are brought back by
 * whoever settles the head.
 *
 * `free` brings all that the change needs: joined to it once more, the planner, which knows nothing
 * of the size of either, compared each follower with each (500 rows: 330 ms, now 26, on a busy
 * machine).
 */
function setBehindText(names: Names): string {
  const { id, state, orderingKey, nextRetryAt } = names.column;
  const key = orderingKey === undefined ? "NULL::text" : `m.${orderingKey}`;
  const rows = tokenSource("follower", { head_id: "$8::bigint[]", instant: "$9::text[]" });
  return `${fenceClause(names)}, head AS MATERIALIZED (
  SELECT m.${id} AS id, ${key} AS ordering_key FROM ${names.table} m
  WHERE m.${id} = ANY ($8::bigint[]) AND m.${state} IN (${names.state("pending", "sending", "suspended", "failed")}) AND EXISTS (SELECT FROM fence)
  ORDER BY m.${id}
  FOR NO KEY UPDATE OF m SKIP LOCKED), free AS MATERIALIZED (
  SELECT follower.id, follower.token, follower.identity_hash, follower.instant FROM ${rows} JOIN head ON head.id = follower.head_id AND head.id < follower.id
    JOIN fence ON fence.shard = follower.shard JOIN ${names.table} m ON m.${id} = follower.id AND ${key} = head.ordering_key
  ORDER BY m.${id}
  FOR NO KEY UPDATE OF m SKIP LOCKED)
UPDATE ${names.table} m
SET ${nextRetryAt} = ${instant("free.instant")}${names.changed}
FROM free
WHERE m.${id} = free.id AND m.${state} = ${names.state("pending")} AND ${names.tokenMatches("free")} AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW})`;
}

/**
 * Locks the rows that it changes, and passes over what others hold. Not fenced: whoever settles or
 * moves a head brings its followers back, and to do it twice changes nothing. One walk for each
 * head, as far as the limit leaves room. A range of one millisecond and not an equality: with that
 * the planner takes next_retry_at out of the order, and may walk the primary key for the rest.
 */
function bringBackText(names: Names): string {
  const { id, state, nextRetryAt } = names.column;
  const at = instant("head.instant");
  return `UPDATE ${names.table} m
SET ${nextRetryAt} = ${names.pendingNow}${names.changed}
WHERE m.${id} = ANY (ARRAY(
  SELECT behind.id FROM unnest($1::text[]) AS head (instant) CROSS JOIN LATERAL (
    SELECT m.${id} AS id FROM ${names.table} m
    WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} >= ${at} AND m.${nextRetryAt} < ${at} + interval '1 millisecond'
    ORDER BY m.${nextRetryAt}, m.${id}
    LIMIT $2::bigint + $3::bigint
    FOR NO KEY UPDATE SKIP LOCKED) behind
  LIMIT $2::bigint OFFSET $3::bigint))`;
}

/** min of a range of the index of timed rows: one look into it. */
function nextBehindText(names: Names): string {
  const { state, nextRetryAt } = names.column;
  return `SELECT ${isoText(`min(m.${nextRetryAt})`)} AS instant
FROM ${names.table} m
WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} > ${instant("$1::text")}${names.ofTopics}`;
}
