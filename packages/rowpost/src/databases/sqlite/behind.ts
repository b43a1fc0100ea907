/**
 * Takes followers of a blocked or busy ordering key out of the scan and brings them back
 * (sql/behind.ts).
 */
import type { HousekeepingStatements } from "../sql/statements.ts";
import { fenceCondition, fenceParams, isoText, type Names, NOW, tokenRows, tokenSource } from "./names.ts";

export function behindStatements(names: Names): Pick<HousekeepingStatements, "setBehind" | "bringBack" | "nextBehind"> {
  const { id, state, orderingKey, nextRetryAt } = names.column;
  const pending = names.state("pending");
  /*
   * The file has one writer at a time: an unfinished head stays so until this commits, and its
   * later settle finds the followers. If we die right after it, that settle brings them back.
   */
  const setBehind = `UPDATE ${names.table} AS m
SET ${nextRetryAt} = follower.instant${names.changed}
FROM ${tokenSource("head_id", "instant")} AS follower
WHERE m.${id} = follower.id AND ${names.isIn("pending")} AND ${names.tokenMatches("follower")} AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW})
  AND EXISTS (SELECT 1 FROM ${names.table} AS head WHERE head.${id} = follower.head_id AND head.${id} < m.${id}
    AND ${orderingKey === undefined ? "false" : `head.${orderingKey} = m.${orderingKey}`} AND +head.${state} IN (${names.state("pending", "sending", "suspended", "failed")}))
  AND ${fenceCondition(names)}`;
  // Head by head in the given order, each along the index, to which SQLite adds the id.
  const bringBack = `UPDATE ${names.table} AS m
SET ${nextRetryAt} = ${names.pendingNow}${names.changed}
WHERE m.${id} IN (SELECT behind.${id} FROM json_each(?) AS head
  CROSS JOIN ${names.table} AS behind ON behind.${state} = ${pending} AND behind.${nextRetryAt} = head.value
  LIMIT ? OFFSET ?)`;
  const nextBehind = `SELECT ${isoText(`min(m.${nextRetryAt})`)} AS instant FROM ${names.table} AS m WHERE m.${state} = ${pending} AND m.${nextRetryAt} > ?${names.ofTopics}`;
  return {
    setBehind: ({ fence, rows }) => ({
      name: "setBehind",
      text: setBehind,
      params: [tokenRows(rows, (row) => [Number(row.headId), row.instant]), ...fenceParams(fence)],
    }),
    bringBack: ({ instants, rows, skip }) => ({
      name: "bringBack",
      text: bringBack,
      params: [JSON.stringify(instants), rows, skip],
    }),
    nextBehind: (afterInstant) => ({ name: "nextBehind", text: nextBehind, params: [afterInstant] }),
  };
}
