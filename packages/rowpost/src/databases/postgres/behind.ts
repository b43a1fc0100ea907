/**
 * Takes followers of a blocked or busy ordering key out of the scan and brings them back
 * (sql/behind.ts).
 */

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
 * Locks the lease rows (key share), then free heads still in place, then free followers. A settle
 * of the head has either committed (the head is finished), holds it (the head is skipped), or waits
 * for us and then finds the followers. A plain read could miss a settle about to commit, and the
 * followers would wait for no head. If we die right after it, the settle of the head brings them
 * back.
 *
 * `free` returns all needed columns. Joined again, the planner compared each follower with each
 * (500 rows: 330 ms, now 26, on a busy machine).
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
 * Locks the rows it changes and skips locked ones. Not fenced: each settle or move of a head brings
 * its followers back, and doing so twice changes nothing. One walk per head. A range of one
 * millisecond, because with an equality the planner may walk the primary key.
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

/** min over a range of the index on timed rows is one lookup. */
function nextBehindText(names: Names): string {
  const { state, nextRetryAt } = names.column;
  return `SELECT ${isoText(`min(m.${nextRetryAt})`)} AS instant
FROM ${names.table} m
WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} > ${instant("$1::text")}${names.ofTopics}`;
}
