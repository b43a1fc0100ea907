/** Moving the progress of a group. The transaction has the file's only write lock. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { RewindStatements } from "../../sql/queue/rewind-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText, NOW } from "../names.ts";

const GROUP = "topic_id = ? AND consumer_group_id = ?";

export const rewind: RewindStatements = {
  lockProgress: ({ topic, group }) => ({
    name: "lockProgress",
    text: `SELECT partition_no AS partitionno, CAST(next_message_id AS TEXT) AS nextid, round
FROM message_consumption WHERE ${GROUP} ORDER BY partition_no`,
    params: [topic, group],
  }),

  /** With the new epoch, what the member of before still writes matches nothing. */
  movePartition: ({ topic, group }, { partition, from, to, month }) => ({
    name: "movePartition",
    text: `UPDATE message_consumption
SET next_message_id = CAST(? AS INTEGER), message_date = ?, round = round + 1, epoch = epoch + 1, owner = NULL,
  lease_until = '1970-01-01 00:00:00.000', update_time = ${NOW}
WHERE ${GROUP} AND partition_no = ? AND next_message_id = CAST(? AS INTEGER)`,
    params: [to, month, topic, group, partition, from],
  }),

  insertRewind: ({ topic, group }, { rewind, partition, round, from, to, undoOf, author, reason }) => ({
    name: "insertRewind",
    text: `INSERT INTO message_rewind (topic_id, consumer_group_id, rewind_no, partition_no, round, from_message_id, to_message_id, undo_of, author, reason, gmt_create)
VALUES (?, ?, ?, ?, ?, CAST(? AS INTEGER), CAST(? AS INTEGER), ?, ?, ?, ${NOW})`,
    params: [topic, group, rewind, partition, round, from, to, undoOf, author, reason],
  }),

  readRewinds: ({ topic, group }, limit) => ({
    name: "readRewinds",
    text: `SELECT rewind_no, partition_no, round, CAST(from_message_id AS TEXT) AS from_id, CAST(to_message_id AS TEXT) AS to_id, undo_of, author, reason, ${isoText("gmt_create")} AS at
FROM message_rewind WHERE ${GROUP} ORDER BY rewind_no DESC, partition_no DESC LIMIT ?`,
    params: [topic, group, limit],
  }),

  forgetReplayed: ({ topic, group }, partition, belowId) => ({
    name: "forgetReplayed",
    text: `DELETE FROM message_redelivery WHERE ${GROUP} AND partition_no = ? AND message_id < CAST(? AS INTEGER) AND state >= 2`,
    params: [topic, group, partition, belowId],
  }),

  restore: ({ topic, group }, partition, belowId) => ({
    name: "restore",
    text: `UPDATE message_redelivery SET state = state - 2, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = ? AND message_id < CAST(? AS INTEGER) AND state >= 2`,
    params: [topic, group, partition, belowId],
  }),

  setAside: ({ topic, group }, partition, fromId) => ({
    name: "setAside",
    text: `UPDATE message_redelivery SET state = state + 2, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = ? AND message_id >= CAST(? AS INTEGER) AND state < 2`,
    params: [topic, group, partition, fromId],
  }),

  countMessages: (topic, { month, partition, fromId, toId }) => ({
    name: "countMessages",
    text: `SELECT count(*) AS n FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ? AND m.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)`,
    params: [partition, fromId, toId],
  }),

  countConsumed: ({ topic, group }, { month, partition, fromId, toId }) => ({
    name: "countConsumed",
    text: `SELECT count(DISTINCT CASE WHEN r.last_message_id IS NULL THEN r.message_id END) + COALESCE(sum(CASE WHEN r.last_message_id IS NOT NULL THEN r.messages END), 0) AS n
FROM ${quoteName(recordTable(topic, month))} AS r
WHERE r.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER) AND r.consumer_group_id = ? AND r.result = 0 AND (r.message_id & 63) = ?`,
    params: [fromId, toId, group, partition],
  }),

  placesBefore: (topic, { month, partition, id, places }) => ({
    name: "placesBefore",
    text: `SELECT CAST(m.message_id AS TEXT) AS id FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ? AND m.message_id < CAST(? AS INTEGER)
ORDER BY m.message_id DESC LIMIT 1 OFFSET ?`,
    params: [partition, id, places - 1],
  }),

  placesBehind: (topic, { month, partition, id, places }) => ({
    name: "placesBehind",
    text: `SELECT CAST(m.message_id AS TEXT) AS id FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ? AND m.message_id > CAST(? AS INTEGER)
ORDER BY m.message_id LIMIT 1 OFFSET ?`,
    params: [partition, id, places - 1],
  }),

  passedMilestones: (topic, { month, partition, beforeId, limit }) => ({
    name: "passedMilestones",
    text: `SELECT count(*) AS n, CAST(max(m.message_id) AS TEXT) AS id FROM (
  SELECT message_id FROM message_milestone
  WHERE topic_id = ? AND partition_no = ? AND message_id < CAST(? AS INTEGER) AND message_id >=
    (SELECT min(i.message_id) FROM ${quoteName(infoTable(topic, month))} AS i WHERE i.partition_no = ?)
  ORDER BY message_id LIMIT ?) AS m`,
    params: [topic, partition, beforeId, partition, limit],
  }),

  insertMilestone: (topic, { partition, id }) => ({
    name: "insertMilestone",
    text: `INSERT INTO message_milestone (topic_id, partition_no, message_id) VALUES (?, ?, CAST(? AS INTEGER))
ON CONFLICT (topic_id, partition_no, message_id) DO NOTHING`,
    params: [topic, partition, id],
  }),
};
