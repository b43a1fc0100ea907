/** Written in the transaction that has locked the partition's progress. */
import type { RedeliveryStatements } from "../../sql/queue/statements.ts";
import { BEHIND_UNTIL, endsRedelivery } from "../../sql/queue/values.ts";
import { msBetween, NOW, numberArray, textArray } from "../names.ts";

const DUE = `CASE WHEN again.due_ms IS NULL THEN '${BEHIND_UNTIL}Z'::timestamptz ELSE ${NOW} + again.due_ms * interval '1 millisecond' END`;
/**
 * Avoids the index on due rows, by which a planner without statistics would read all waiting rows
 * of the partition.
 */
const WAITS = "state + 0 = 0";
const PLACE = "topic_id = $1 AND consumer_group_id = $2 AND partition_no = $3";
const AGAIN = `unnest($4::bigint[], $5::smallint[], $6::integer[], $7::bigint[], $8::text[], $9::text[])
  AS again (id, state, attempt, due_ms, fail_reason, ordering_key)`;

/**
 * The first waiting message of an ordering key. Compares and sorts by all columns of the key index,
 * the only one with this order, so the planner takes it with any statistics.
 */
function firstOf(key: string): string {
  const columns = "topic_id, consumer_group_id, partition_no, ordering_key";
  return `SELECT message_id FROM message_redelivery
  WHERE (${columns}) >= ($1, $2, $3, ${key}) AND (${columns}) <= ($1, $2, $3, ${key}) AND ordering_key IS NOT NULL AND ${WAITS}
  ORDER BY ${columns}, message_id LIMIT 1`;
}

function columns(redeliveries: Parameters<RedeliveryStatements["putRedeliveries"]>[2]): readonly string[] {
  return [
    numberArray(redeliveries.map(({ id }) => id)),
    numberArray(redeliveries.map(({ state }) => (state === "dead" ? 1 : 0))),
    numberArray(redeliveries.map(({ attempt }) => attempt)),
    numberArray(redeliveries.map(({ dueInMs }) => (dueInMs === null ? null : Math.ceil(dueInMs)))),
    textArray(redeliveries.map(({ failReason }) => failReason)),
    textArray(redeliveries.map(({ orderingKey }) => orderingKey ?? null)),
  ];
}

export const redelivery: RedeliveryStatements = {
  /**
   * Locks the rows it writes; while the progress row is locked, no other transaction writes them.
   */
  putRedeliveries: ({ topic, group }, partition, redeliveries) => ({
    name: "putRedeliveries",
    text: `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, next_attempt_at, fail_reason, ordering_key)
SELECT $1, $2, $3::integer, again.id, again.state, again.attempt, ${DUE}, again.fail_reason, again.ordering_key
FROM ${AGAIN}
ON CONFLICT (topic_id, consumer_group_id, partition_no, message_id) DO UPDATE
SET state = EXCLUDED.state, attempt = EXCLUDED.attempt, first_attempt = 0, next_attempt_at = EXCLUDED.next_attempt_at,
  fail_reason = EXCLUDED.fail_reason, ordering_key = EXCLUDED.ordering_key, gmt_modified = ${NOW}`,
    params: [topic, group, partition, ...columns(redeliveries)],
  }),

  /** Locks like putRedeliveries. A skipped or discarded message does not come back. */
  changeRedeliveries: ({ topic, group }, partition, redeliveries) => ({
    name: "changeRedeliveries",
    text: `UPDATE message_redelivery r
SET state = again.state, attempt = again.attempt, next_attempt_at = ${DUE}, fail_reason = again.fail_reason, ordering_key = again.ordering_key, gmt_modified = ${NOW}
FROM ${AGAIN}
WHERE r.topic_id = $1 AND r.consumer_group_id = $2 AND r.partition_no = $3 AND r.message_id = again.id AND r.message_id = ANY ($4::bigint[]) AND r.${WAITS} AND ${endsRedelivery("r", "again.attempt")}`,
    params: [topic, group, partition, ...columns(redeliveries)],
  }),

  /** Locks like putRedeliveries. */
  deleteRedeliveries: ({ topic, group }, partition, ids) => ({
    name: "deleteRedeliveries",
    text: `DELETE FROM message_redelivery WHERE ${PLACE} AND message_id = ANY ($4::bigint[])`,
    params: [topic, group, partition, numberArray(ids)],
  }),

  /** Locks like putRedeliveries, so no message gets in front of the first one during the lookup. */
  releaseKeys: ({ topic, group }, partition, orderingKeys) => ({
    name: "releaseKeys",
    text: `UPDATE message_redelivery
SET next_attempt_at = ${NOW}
WHERE ${PLACE} AND next_attempt_at >= '${BEHIND_UNTIL}Z'::timestamptz
  AND message_id = ANY (ARRAY(SELECT (${firstOf("released.key")}) FROM unnest($4::text[]) AS released (key)))`,
    params: [topic, group, partition, textArray(orderingKeys)],
  }),

  heldUpKeys: ({ topic, group }, partition, orderingKeys) => ({
    name: "heldUpKeys",
    text: `SELECT wanted.key AS orderingkey FROM unnest($4::text[]) AS wanted (key)
WHERE (${firstOf("wanted.key")}) IS NOT NULL`,
    params: [topic, group, partition, textArray(orderingKeys)],
  }),

  // One index row per partition.
  firstDue: (keys) => ({
    name: "firstDue",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.partition_no AS partitionno, ${msBetween(NOW, "r.next_attempt_at")} AS dueinms
FROM unnest($1::text[], $2::text[]) AS wanted (topic_id, consumer_group_id)
JOIN message_consumption p ON p.topic_id = wanted.topic_id AND p.consumer_group_id = wanted.consumer_group_id
CROSS JOIN LATERAL (SELECT next_attempt_at FROM message_redelivery i
  WHERE i.topic_id = p.topic_id AND i.consumer_group_id = p.consumer_group_id AND i.partition_no = p.partition_no AND i.state = 0
  ORDER BY next_attempt_at LIMIT 1) r`,
    params: [textArray(keys.map(({ topic }) => topic)), textArray(keys.map(({ group }) => group))],
  }),
};
