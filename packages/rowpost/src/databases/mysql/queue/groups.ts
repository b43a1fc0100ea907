/** Looking at groups, and what people do to them. */
import type { GroupStatements } from "../../sql/queue/groups-statements.ts";
import { infoTable } from "../../sql/queue/names.ts";
import { BEHIND_UNTIL } from "../../sql/queue/values.ts";
import { isoText, COMPANION_NOW as NOW, whole } from "../clock.ts";
import { quoteName } from "../names.ts";

const GROUP = "topic_id = ? AND consumer_group_id = ?";
const RANGE = "partition_no = ? AND message_id BETWEEN ? AND ?";

function msSince(instant: string): string {
  return `GREATEST(0, TIMESTAMPDIFF(MICROSECOND, ${instant}, ${NOW}) DIV 1000)`;
}

export const groups: GroupStatements = {
  /** Two members that join at once meet at the key; what somebody has paused stays paused. */
  putGroup: ({ topic, group }) => ({
    name: "putGroup",
    text: "INSERT INTO message_group (topic_id, consumer_group_id) VALUES (?, ?) ON DUPLICATE KEY UPDATE paused_by = paused_by",
    params: [topic, group],
  }),

  /** Locks the group's row until its own end; members read it before each of their reads. */
  setPause: ({ topic, group }, pause) => ({
    name: "setPause",
    text:
      pause === undefined
        ? `UPDATE message_group SET paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${GROUP} AND paused_at IS NOT NULL`
        : `UPDATE message_group SET paused_at = ${NOW}, paused_by = ?, pause_reason = ? WHERE ${GROUP} AND paused_at IS NULL`,
    params: pause === undefined ? [topic, group] : [pause.author, pause.reason, topic, group],
  }),

  readGroups: (topic, group) => ({
    name: "readGroups",
    text: `SELECT p.consumer_group_id AS group_id, p.partition_no, CAST(p.next_message_id AS CHAR) AS next_id, CAST(c.last_id * 64 + c.partition_no AS CHAR) AS last_id,
    p.round, p.owner, m.label, ${isoText("p.taken_at")} AS held_since, ${msSince("p.update_time")} AS moved_ms,
    ${isoText("g.paused_at")} AS paused_at, g.paused_by, g.pause_reason
  FROM message_consumption AS p
  JOIN message_topic_partition AS c ON c.topic_id = p.topic_id AND c.partition_no = p.partition_no
  LEFT JOIN message_consumer AS m ON m.topic_id = p.topic_id AND m.consumer_group_id = p.consumer_group_id AND m.owner = p.owner
  LEFT JOIN message_group AS g ON g.topic_id = p.topic_id AND g.consumer_group_id = p.consumer_group_id
  WHERE p.topic_id = ?${group === undefined ? "" : " AND p.consumer_group_id = ?"}
  ORDER BY p.consumer_group_id, p.partition_no`,
    params: group === undefined ? [topic] : [topic, group],
  }),

  countMessages: ({ topic, month, partition, fromId, toId }, limit) => ({
    name: "countMessages",
    text: `SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} LIMIT ${whole(limit)}) AS unread`,
    params: [partition, fromId, toId],
  }),

  firstMessage: ({ topic, month, partition, fromId, toId }) => ({
    name: "firstMessage",
    text: `SELECT CAST(message_id AS CHAR) AS id, message_key, message_type FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} ORDER BY message_id LIMIT 1`,
    params: [partition, fromId, toId],
  }),

  countRedeliveries: ({ topic, group }, partition, limit) => ({
    name: "countRedeliveries",
    text: `SELECT COUNT(CASE WHEN state = 0 AND NOT behind THEN 1 END) AS waiting, COUNT(CASE WHEN state = 0 AND behind THEN 1 END) AS behind,
    COUNT(CASE WHEN state = 1 THEN 1 END) AS dead, CAST(MIN(CASE WHEN state = 0 THEN message_id END) AS CHAR) AS oldest
  FROM (SELECT message_id, state, next_attempt_at >= TIMESTAMP'${BEHIND_UNTIL}' AS behind FROM message_redelivery FORCE INDEX (PRIMARY)
    WHERE ${GROUP} AND partition_no = ${whole(partition)} ORDER BY message_id LIMIT ${whole(limit)}) AS counted`,
    params: [topic, group],
  }),

  pageRedeliveries: ({ topic, group }, after, limit) => ({
    name: "pageRedeliveries",
    text: `SELECT CAST(message_id AS CHAR) AS id, partition_no, state, attempt, first_attempt, ${isoText("next_attempt_at")} AS next_attempt_at,
    next_attempt_at >= TIMESTAMP'${BEHIND_UNTIL}' AS behind, fail_reason, ordering_key, ${isoText("gmt_modified")} AS changed_at
  FROM message_redelivery FORCE INDEX (PRIMARY)
  WHERE ${GROUP} AND (partition_no > ? OR (partition_no = ? AND message_id > ?))
  ORDER BY partition_no, message_id LIMIT ${whole(limit)}`,
    params: [topic, group, after.partition, after.partition, after.id],
  }),

  /** Until the transaction ends no settle of this partition is under way, and no takeover. */
  lockProgress: ({ topic, group }, partition) => ({
    name: "lockProgress",
    text: `SELECT CAST(next_message_id AS CHAR) AS nextid, round FROM message_consumption WHERE ${GROUP} AND partition_no = ? FOR UPDATE`,
    params: [topic, group, partition],
  }),

  /** Of a row that this transaction has locked. */
  passHead: ({ topic, group }, partition, { id, month }) => ({
    name: "passHead",
    text: `UPDATE message_consumption SET next_message_id = ?, message_date = ?, epoch = epoch + 1, update_time = ${NOW} WHERE ${GROUP} AND partition_no = ?`,
    params: [id, month, topic, group, partition],
  }),

  /** Under the lock of the progress, as every change of these rows. */
  lockRedeliveries: ({ topic, group }, partition, ids) => ({
    name: "lockRedeliveries",
    text: `SELECT CAST(message_id AS CHAR) AS id, state, attempt, ordering_key, next_attempt_at >= TIMESTAMP'${BEHIND_UNTIL}' AS behind FROM message_redelivery
  WHERE ${GROUP} AND partition_no = ? AND message_id IN (${ids.map(() => "?").join(", ")}) ORDER BY message_id FOR UPDATE`,
    params: [topic, group, partition, ...ids],
  }),

  /** Of rows that this transaction has locked. The state last: it is looked at before. */
  redeliverNow: ({ topic, group }, partition, ids) => ({
    name: "redeliverNow",
    text: `UPDATE message_redelivery
  SET first_attempt = CASE WHEN state = 1 THEN attempt ELSE first_attempt END, next_attempt_at = ${NOW}, gmt_modified = ${NOW}, state = 0
  WHERE ${GROUP} AND partition_no = ? AND message_id IN (${ids.map(() => "?").join(", ")})`,
    params: [topic, group, partition, ...ids],
  }),

  /**
   * Under the locks of the group's progress: members that settle or take a partition wait for them.
   * If we die right after it, nothing is deleted.
   */
  forgetGroup: ({ topic, group }, round) => ({
    name: "forgetGroup",
    text: `UPDATE message_group SET round = ?, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${GROUP}`,
    params: [round, topic, group],
  }),

  /** As above; of the group's progress first. */
  deleteGroup: (table, { topic, group }) => ({
    name: "deleteGroup",
    text: `DELETE FROM ${table} WHERE ${GROUP}`,
    params: [topic, group],
  }),
};
