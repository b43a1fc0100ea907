/** Moving the progress of a group. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { RewindStatements } from "../../sql/queue/rewind-statements.ts";
import { isoText, COMPANION_NOW as NOW, whole } from "../clock.ts";
import { quoteName } from "../names.ts";

const GROUP = "topic_id = ? AND consumer_group_id = ?";

export const rewind: RewindStatements = {
  /** Settles and takeovers of the group wait, or were before, and then are seen here. */
  lockProgress: ({ topic, group }) => ({
    name: "lockProgress",
    text: `SELECT partition_no AS partitionno, CAST(next_message_id AS CHAR) AS nextid, round
  FROM message_consumption WHERE ${GROUP} ORDER BY partition_no FOR UPDATE`,
    params: [topic, group],
  }),

  /**
   * Of a row that this transaction has locked. With the new epoch, and without an owner, whatever
   * the member of before still writes matches nothing. If we die right after it, nothing has moved.
   */
  movePartition: ({ topic, group }, { partition, from, to, month }) => ({
    name: "movePartition",
    text: `UPDATE message_consumption
  SET next_message_id = ?, message_date = ${whole(month)}, round = round + 1, epoch = epoch + 1, owner = NULL,
    lease_until = '1970-01-01 00:00:00', update_time = ${NOW}
  WHERE ${GROUP} AND partition_no = ${whole(partition)} AND next_message_id = ?`,
    params: [to, topic, group, from],
  }),

  /** In the same transaction; numbered under the locks of the progress. */
  insertRewind: ({ topic, group }, { rewind, partition, round, from, to, undoOf, author, reason }) => ({
    name: "insertRewind",
    text: `INSERT INTO message_rewind (topic_id, consumer_group_id, rewind_no, partition_no, round, from_message_id, to_message_id, undo_of, author, reason, gmt_create)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${NOW})`,
    params: [topic, group, rewind, partition, round, from, to, undoOf, author, reason],
  }),

  readRewinds: ({ topic, group }, limit) => ({
    name: "readRewinds",
    text: `SELECT rewind_no, partition_no, round, CAST(from_message_id AS CHAR) AS from_id, CAST(to_message_id AS CHAR) AS to_id, undo_of, author, reason,
    ${isoText("gmt_create")} AS at
  FROM message_rewind WHERE ${GROUP} ORDER BY rewind_no DESC, partition_no DESC LIMIT ${whole(limit)}`,
    params: [topic, group],
  }),

  /** Locks rows that nobody else writes while the progress is locked; so do the next two. */
  forgetReplayed: ({ topic, group }, partition, belowId) => ({
    name: "forgetReplayed",
    text: `DELETE FROM message_redelivery WHERE ${GROUP} AND partition_no = ${whole(partition)} AND message_id < ? AND state >= 2`,
    params: [topic, group, belowId],
  }),

  /** As above. */
  restore: ({ topic, group }, partition, belowId) => ({
    name: "restore",
    text: `UPDATE message_redelivery SET state = state - 2, gmt_modified = ${NOW}
  WHERE ${GROUP} AND partition_no = ${whole(partition)} AND message_id < ? AND state >= 2`,
    params: [topic, group, belowId],
  }),

  /** As above. */
  setAside: ({ topic, group }, partition, fromId) => ({
    name: "setAside",
    text: `UPDATE message_redelivery SET state = state + 2, gmt_modified = ${NOW}
  WHERE ${GROUP} AND partition_no = ${whole(partition)} AND message_id >= ? AND state < 2`,
    params: [topic, group, fromId],
  }),

  countMessages: (topic, { month, partition, fromId, toId }) => ({
    name: "countMessages",
    text: `SELECT COUNT(*) AS n FROM ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY)
  WHERE m.partition_no = ${whole(partition)} AND m.message_id BETWEEN ? AND ?`,
    params: [fromId, toId],
  }),

  countConsumed: ({ topic, group }, { month, partition, fromId, toId }) => ({
    name: "countConsumed",
    text: `SELECT COUNT(DISTINCT CASE WHEN r.last_message_id IS NULL THEN r.message_id END) + COALESCE(SUM(CASE WHEN r.last_message_id IS NOT NULL THEN r.messages END), 0) AS n
  FROM ${quoteName(recordTable(topic, month))} AS r FORCE INDEX (PRIMARY)
  WHERE r.message_id BETWEEN ? AND ? AND r.consumer_group_id = ? AND r.result = 0 AND r.message_id % 64 = ${whole(partition)}`,
    params: [fromId, toId, group],
  }),

  placesBefore: (topic, { month, partition, id, places }) => ({
    name: "placesBefore",
    text: `SELECT CAST(m.message_id AS CHAR) AS id FROM ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY)
  WHERE m.partition_no = ${whole(partition)} AND m.message_id < ?
  ORDER BY m.message_id DESC LIMIT 1 OFFSET ${whole(places - 1)}`,
    params: [id],
  }),

  placesBehind: (topic, { month, partition, id, places }) => ({
    name: "placesBehind",
    text: `SELECT CAST(m.message_id AS CHAR) AS id FROM ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY)
  WHERE m.partition_no = ${whole(partition)} AND m.message_id > ?
  ORDER BY m.message_id LIMIT 1 OFFSET ${whole(places - 1)}`,
    params: [id],
  }),

  passedMilestones: (topic, { month, partition, beforeId, limit }) => ({
    name: "passedMilestones",
    text: `SELECT COUNT(*) AS n, CAST(MAX(m.message_id) AS CHAR) AS id FROM (
    SELECT message_id FROM message_milestone FORCE INDEX (PRIMARY)
    WHERE topic_id = ? AND partition_no = ${whole(partition)} AND message_id < ? AND message_id >=
      (SELECT MIN(i.message_id) FROM ${quoteName(infoTable(topic, month))} AS i FORCE INDEX (PRIMARY) WHERE i.partition_no = ${whole(partition)})
    ORDER BY message_id LIMIT ${whole(limit)}) AS m`,
    params: [topic, beforeId],
  }),

  /** Locks the new row. Whoever inserts the same one waits, and leaves it as it is. */
  insertMilestone: (topic, { partition, id }) => ({
    name: "insertMilestone",
    text: "INSERT IGNORE INTO message_milestone (topic_id, partition_no, message_id) VALUES (?, ?, ?)",
    params: [topic, partition, id],
  }),
};
