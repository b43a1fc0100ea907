/**
 * Takes followers of a blocked or busy ordering key out of the scan and brings them back
 * (sql/behind.ts).
 */
import type { HousekeepingStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import { type MysqlNames, UNFINISHED } from "./names.ts";

export function behindStatements(
  names: MysqlNames,
): Pick<HousekeepingStatements, "setBehind" | "bringBack" | "nextBehind"> {
  const { column, messages, state } = names;
  const ids = (list: readonly string[]): string => [...new Set(list)].join(", ");
  const orderingKey = names.has("orderingKey") ? column("orderingKey") : "NULL";

  return {
    /**
     * Locks the free heads still in place, then the free followers, then, in the join, the lease
     * rows in share mode. A settle of the head has either committed (the head is finished), holds
     * it (the head is skipped), or waits for us and then finds the followers. A plain read could
     * miss a settle about to commit, and the followers would wait for no head. LIMIT keeps the
     * optimizer from merging the reads into the join, where they would block. If we die right after
     * it, the settle of the head brings the followers back.
     */
    setBehind: ({ fence, rows }) => ({
      name: "setBehind",
      text: `UPDATE ${names.fencedSource(", head_id BIGINT PATH '$[5]', instant VARCHAR(23) CHARACTER SET ascii PATH '$[6]'")}
  STRAIGHT_JOIN (SELECT ${column("id")} AS id, ${orderingKey} AS ordering_key FROM ${names.byId}
    WHERE ${column("id")} IN (${ids(rows.map(({ headId }) => headId))}) AND ${column("state")} IN (${names.states(UNFINISHED)})
    LIMIT ${whole(rows.length)} FOR UPDATE SKIP LOCKED) AS h ON h.id = j.head_id AND h.id < j.id
  STRAIGHT_JOIN (SELECT ${column("id")} AS id FROM ${names.byId} WHERE ${column("id")} IN (${ids(rows.map(({ id }) => id))})
    LIMIT ${whole(rows.length)} FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id AND ${orderingKey} = h.ordering_key
  SET ${column("nextRetryAt")} = j.instant${names.bumpVersion}${names.touch}
  WHERE ${column("state")} = ${state("pending")} ${names.tokenMatches}
    AND (${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})`,
      params: [names.fencedRows(fence, rows, (row) => [row.headId, row.instant]), names.leaseKey, fence.owner],
    }),

    /**
     * Locks the rows it changes and skips locked ones. Not fenced: each settle or move of a head
     * brings its followers back, and doing so twice changes nothing.
     */
    bringBack: ({ instants, rows, skip }) => ({
      name: "bringBack",
      text: `UPDATE (SELECT c.id FROM (SELECT ${column("id")} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} IN (${instants.map(() => "?").join(", ")})
    ORDER BY ${column("nextRetryAt")}, ${column("id")} LIMIT ${whole(rows)} OFFSET ${whole(skip)} FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = ${names.atOnce}${names.bumpVersion}${names.touch}`,
      params: instants,
    }),

    /**
     * One index lookup, MIN over a range of (state, next_retry_at). Returned as stored, without a
     * time zone.
     */
    nextBehind: (afterInstant) => ({
      name: "nextBehind",
      text: `SELECT LEFT(DATE_FORMAT(MIN(${column("nextRetryAt")}), '%Y-%m-%dT%H:%i:%s.%f'), 23) AS instant
  FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} > ?${names.ofTopics}`,
      params: [afterInstant],
    }),
  };
}
