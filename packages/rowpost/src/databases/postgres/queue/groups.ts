/** Looking at groups, and what people do to them. */
import type { GroupStatements } from "../../sql/queue/groups-statements.ts";
import { infoTable } from "../../sql/queue/names.ts";
import { BEHIND_UNTIL } from "../../sql/queue/values.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText, msSince, NOW, numberArray } from "../names.ts";

const GROUP = "topic_id = $1 AND consumer_group_id = $2";
const RANGE = "partition_no = $1 AND message_id BETWEEN $2::bigint AND $3::bigint";

export const groups: GroupStatements = {
  /** Two members that join at once meet at the key; what somebody has paused stays paused. */
  putGroup: ({ topic, group }) => ({
    name: "putGroup",
    text: "INSERT INTO message_group (topic_id, consumer_group_id) VALUES ($1, $2) ON CONFLICT (topic_id, consumer_group_id) DO NOTHING",
    params: [topic, group],
  }),

  /** Locks the group's row until its own end; members read it before each of their reads. */
  setPause: ({ topic, group }, pause) => ({
    name: "setPause",
    text:
      pause === undefined
        ? `UPDATE message_group SET paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${GROUP} AND paused_at IS NOT NULL`
        : `UPDATE message_group SET paused_at = ${NOW}, paused_by = $3, pause_reason = $4 WHERE ${GROUP} AND paused_at IS NULL`,
    params: pause === undefined ? [topic, group] : [topic, group, pause.author, pause.reason],
  }),

  // LIMIT has each row looked up by its whole key: before a table was analyzed PostgreSQL 18
  // read all partitions of the topic for each of them.
  readGroups: (topic, group) => ({
    name: "readGroups",
    text: `SELECT p.consumer_group_id AS group_id, p.partition_no, p.next_message_id::text AS next_id, (c.last_id * 64 + p.partition_no)::text AS last_id,
  p.round, p.owner, m.label, ${isoText("p.taken_at")} AS held_since, CASE WHEN p.update_time IS NULL THEN NULL ELSE ${msSince("p.update_time")} END AS moved_ms,
  ${isoText("g.paused_at")} AS paused_at, g.paused_by, g.pause_reason
FROM message_consumption p
CROSS JOIN LATERAL (SELECT last_id FROM message_topic_partition t
  WHERE t.topic_id = p.topic_id AND t.partition_no = p.partition_no LIMIT 1) c
LEFT JOIN LATERAL (SELECT label FROM message_consumer t
  WHERE t.topic_id = p.topic_id AND t.consumer_group_id = p.consumer_group_id AND t.owner = p.owner LIMIT 1) m ON TRUE
LEFT JOIN LATERAL (SELECT paused_at, paused_by, pause_reason FROM message_group t
  WHERE t.topic_id = p.topic_id AND t.consumer_group_id = p.consumer_group_id LIMIT 1) g ON TRUE
WHERE p.topic_id = $1${group === undefined ? "" : " AND p.consumer_group_id = $2"}
ORDER BY p.consumer_group_id, p.partition_no`,
    params: group === undefined ? [topic] : [topic, group],
  }),

  countMessages: ({ topic, month, partition, fromId, toId }, limit) => ({
    name: "countMessages",
    text: `SELECT count(*) AS n FROM (SELECT 1 AS one FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} LIMIT $4::bigint) unread`,
    params: [partition, fromId, toId, limit],
  }),

  firstMessage: ({ topic, month, partition, fromId, toId }) => ({
    name: "firstMessage",
    text: `SELECT message_id::text AS id, message_key, message_type FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} ORDER BY message_id LIMIT 1`,
    params: [partition, fromId, toId],
  }),

  countRedeliveries: ({ topic, group }, partition, limit) => ({
    name: "countRedeliveries",
    text: `SELECT count(*) FILTER (WHERE state = 0 AND NOT behind) AS waiting, count(*) FILTER (WHERE state = 0 AND behind) AS behind,
  count(*) FILTER (WHERE state = 1) AS dead, (min(message_id) FILTER (WHERE state = 0))::text AS oldest
FROM (SELECT message_id, state, next_attempt_at >= '${BEHIND_UNTIL}Z'::timestamptz AS behind FROM message_redelivery
  WHERE ${GROUP} AND partition_no = $3 ORDER BY message_id LIMIT $4::bigint) counted`,
    params: [topic, group, partition, limit],
  }),

  pageRedeliveries: ({ topic, group }, after, limit) => ({
    name: "pageRedeliveries",
    text: `SELECT message_id::text AS id, partition_no, state, attempt, first_attempt, ${isoText("next_attempt_at")} AS next_attempt_at,
  CASE WHEN next_attempt_at >= '${BEHIND_UNTIL}Z'::timestamptz THEN 1 ELSE 0 END AS behind, fail_reason, ordering_key, ${isoText("gmt_modified")} AS changed_at
FROM message_redelivery WHERE ${GROUP} AND (partition_no, message_id) > ($3::integer, $4::bigint)
ORDER BY partition_no, message_id LIMIT $5::bigint`,
    params: [topic, group, after.partition, after.id, limit],
  }),

  /** Until the transaction ends no settle of this partition is under way, and no takeover. */
  lockProgress: ({ topic, group }, partition) => ({
    name: "lockProgress",
    text: `SELECT next_message_id::text AS nextid, round FROM message_consumption WHERE ${GROUP} AND partition_no = $3 FOR UPDATE`,
    params: [topic, group, partition],
  }),

  /** Of a row that this transaction has locked. */
  passHead: ({ topic, group }, partition, { id, month }) => ({
    name: "passHead",
    text: `UPDATE message_consumption SET next_message_id = $4::bigint, message_date = $5::integer, epoch = epoch + 1, update_time = ${NOW} WHERE ${GROUP} AND partition_no = $3`,
    params: [topic, group, partition, id, month],
  }),

  /** Under the lock of the progress, as every change of these rows. */
  lockRedeliveries: ({ topic, group }, partition, ids) => ({
    name: "lockRedeliveries",
    text: `SELECT message_id::text AS id, state, attempt, ordering_key, CASE WHEN next_attempt_at >= '${BEHIND_UNTIL}Z'::timestamptz THEN 1 ELSE 0 END AS behind
FROM message_redelivery
WHERE ${GROUP} AND partition_no = $3 AND message_id = ANY ($4::bigint[]) ORDER BY message_id FOR UPDATE`,
    params: [topic, group, partition, numberArray(ids)],
  }),

  /** Of rows that this transaction has locked. */
  redeliverNow: ({ topic, group }, partition, ids) => ({
    name: "redeliverNow",
    text: `UPDATE message_redelivery
SET first_attempt = CASE WHEN state = 1 THEN attempt ELSE first_attempt END, state = 0, next_attempt_at = ${NOW}, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = $3 AND message_id = ANY ($4::bigint[])`,
    params: [topic, group, partition, numberArray(ids)],
  }),

  /**
   * Under the locks of the group's progress: members that settle or take a partition wait for them.
   * If we die right after it, nothing is deleted.
   */
  forgetGroup: ({ topic, group }, round) => ({
    name: "forgetGroup",
    text: `UPDATE message_group SET round = $3, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${GROUP}`,
    params: [topic, group, round],
  }),

  /** As above; of the group's progress first. */
  deleteGroup: (table, { topic, group }) => ({
    name: "deleteGroup",
    text: `DELETE FROM ${table} WHERE ${GROUP}`,
    params: [topic, group],
  }),
};
