/** Looking at groups, and what people do to them. Whoever writes has the file's only write lock. */
import type { GroupStatements } from "../../sql/queue/groups-statements.ts";
import { infoTable } from "../../sql/queue/names.ts";
import { BEHIND_UNTIL } from "../../sql/queue/values.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText, jsonIds, msSince, NOW } from "../names.ts";

const GROUP = "topic_id = ? AND consumer_group_id = ?";
const RANGE = "partition_no = ? AND message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)";

export const groups: GroupStatements = {
  // What somebody has paused stays paused.
  putGroup: ({ topic, group }) => ({
    name: "putGroup",
    text: "INSERT INTO message_group (topic_id, consumer_group_id) VALUES (?, ?) ON CONFLICT (topic_id, consumer_group_id) DO NOTHING",
    params: [topic, group],
  }),

  setPause: ({ topic, group }, pause) => ({
    name: "setPause",
    text: `UPDATE message_group SET paused_at = CASE WHEN ? IS NOT NULL THEN ${NOW} END, paused_by = ?, pause_reason = ?
WHERE ${GROUP} AND (paused_at IS NULL) = ?`,
    params: [
      ...[pause?.author ?? null, pause?.author ?? null, pause?.reason ?? null],
      ...[topic, group, pause === undefined ? 0 : 1],
    ],
  }),

  /** In the transaction that deletes the group, so before it or behind it a member writes. */
  forgetGroup: ({ topic, group }, round) => ({
    name: "forgetGroup",
    text: `UPDATE message_group SET round = ?, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${GROUP}`,
    params: [round, topic, group],
  }),

  readGroups: (topic, group) => ({
    name: "readGroups",
    text: `SELECT p.consumer_group_id AS group_id, p.partition_no, CAST(p.next_message_id AS TEXT) AS next_id, CAST(c.last_id * 64 + c.partition_no AS TEXT) AS last_id,
  p.round, p.owner, m.label, ${isoText("p.taken_at")} AS held_since, max(0, ${msSince("p.update_time")}) AS moved_ms,
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
    text: `SELECT count(*) AS n FROM (SELECT 1 FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} LIMIT ?)`,
    params: [partition, fromId, toId, limit],
  }),

  firstMessage: ({ topic, month, partition, fromId, toId }) => ({
    name: "firstMessage",
    text: `SELECT CAST(message_id AS TEXT) AS id, message_key, message_type FROM ${quoteName(infoTable(topic, month))} WHERE ${RANGE} ORDER BY message_id LIMIT 1`,
    params: [partition, fromId, toId],
  }),

  countRedeliveries: ({ topic, group }, partition, limit) => ({
    name: "countRedeliveries",
    text: `SELECT count(CASE WHEN state = 0 AND NOT behind THEN 1 END) AS waiting, count(CASE WHEN state = 0 AND behind THEN 1 END) AS behind,
  count(CASE WHEN state = 1 THEN 1 END) AS dead, CAST(min(CASE WHEN state = 0 THEN message_id END) AS TEXT) AS oldest
FROM (SELECT message_id, state, next_attempt_at >= '${BEHIND_UNTIL}' AS behind FROM message_redelivery
  WHERE ${GROUP} AND partition_no = ? ORDER BY message_id LIMIT ?)`,
    params: [topic, group, partition, limit],
  }),

  pageRedeliveries: ({ topic, group }, after, limit) => ({
    name: "pageRedeliveries",
    text: `SELECT CAST(message_id AS TEXT) AS id, partition_no, state, attempt, first_attempt, ${isoText("next_attempt_at")} AS next_attempt_at,
  next_attempt_at >= '${BEHIND_UNTIL}' AS behind, fail_reason, ordering_key, ${isoText("gmt_modified")} AS changed_at
FROM message_redelivery WHERE ${GROUP} AND (partition_no, message_id) > (?, CAST(? AS INTEGER))
ORDER BY partition_no, message_id LIMIT ?`,
    params: [topic, group, after.partition, after.id, limit],
  }),

  lockProgress: ({ topic, group }, partition) => ({
    name: "lockProgress",
    text: `SELECT CAST(next_message_id AS TEXT) AS nextid, round FROM message_consumption WHERE ${GROUP} AND partition_no = ?`,
    params: [topic, group, partition],
  }),

  passHead: ({ topic, group }, partition, { id, month }) => ({
    name: "passHead",
    text: `UPDATE message_consumption SET next_message_id = CAST(? AS INTEGER), message_date = ?, epoch = epoch + 1, update_time = ${NOW} WHERE ${GROUP} AND partition_no = ?`,
    params: [id, month, topic, group, partition],
  }),

  lockRedeliveries: ({ topic, group }, partition, ids) => ({
    name: "lockRedeliveries",
    text: `SELECT CAST(message_id AS TEXT) AS id, state, attempt, ordering_key, next_attempt_at >= '${BEHIND_UNTIL}' AS behind FROM message_redelivery
WHERE ${GROUP} AND partition_no = ? AND message_id IN (SELECT value FROM json_each(?)) ORDER BY message_id`,
    params: [topic, group, partition, jsonIds(ids)],
  }),

  redeliverNow: ({ topic, group }, partition, ids) => ({
    name: "redeliverNow",
    text: `UPDATE message_redelivery
SET first_attempt = CASE WHEN state = 1 THEN attempt ELSE first_attempt END, state = 0, next_attempt_at = ${NOW}, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = ? AND message_id IN (SELECT value FROM json_each(?))`,
    params: [topic, group, partition, jsonIds(ids)],
  }),

  /** Of the group's progress first, in one transaction with its other rows. */
  deleteGroup: (table, { topic, group }) => ({
    name: "deleteGroup",
    text: `DELETE FROM ${table} WHERE ${GROUP}`,
    params: [topic, group],
  }),
};
