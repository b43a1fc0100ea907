/** Moving the progress of a group. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { RewindStatements } from "../../sql/queue/rewind-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText, NOW } from "../names.ts";

const GROUP = "topic_id = $1 AND consumer_group_id = $2";

export const rewind: RewindStatements = {
  /** Settles and takeovers of the group wait, or were before, and then are seen here. */
  lockProgress: ({ topic, group }) => ({
    name: "lockProgress",
    text: `SELECT partition_no AS partitionno, next_message_id::text AS nextid, round
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
SET next_message_id = $4::bigint, message_date = $5::integer, round = round + 1, epoch = epoch + 1, owner = NULL,
  lease_until = '1970-01-01T00:00:00Z', update_time = ${NOW}
WHERE ${GROUP} AND partition_no = $3 AND next_message_id = $6::bigint`,
    params: [topic, group, partition, to, month, from],
  }),

  /** In the same transaction; numbered under the locks of the progress. */
  insertRewind: ({ topic, group }, { rewind, partition, round, from, to, undoOf, author, reason }) => ({
    name: "insertRewind",
    text: `INSERT INTO message_rewind (topic_id, consumer_group_id, rewind_no, partition_no, round, from_message_id, to_message_id, undo_of, author, reason)
VALUES ($1, $2, $3, $4, $5, $6::bigint, $7::bigint, $8::integer, $9, $10)`,
    params: [topic, group, rewind, partition, round, from, to, undoOf, author, reason],
  }),

  readRewinds: ({ topic, group }, limit) => ({
    name: "readRewinds",
    text: `SELECT rewind_no, partition_no, round, from_message_id::text AS from_id, to_message_id::text AS to_id, undo_of, author, reason, ${isoText("gmt_create")} AS at
FROM message_rewind WHERE ${GROUP} ORDER BY rewind_no DESC, partition_no DESC LIMIT $3::bigint`,
    params: [topic, group, limit],
  }),

  /** Locks rows that nobody else writes while the progress is locked; so do the next two. */
  forgetReplayed: ({ topic, group }, partition, belowId) => ({
    name: "forgetReplayed",
    text: `DELETE FROM message_redelivery WHERE ${GROUP} AND partition_no = $3 AND message_id < $4::bigint AND state >= 2`,
    params: [topic, group, partition, belowId],
  }),

  /** As above. */
  restore: ({ topic, group }, partition, belowId) => ({
    name: "restore",
    text: `UPDATE message_redelivery SET state = state - 2, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = $3 AND message_id < $4::bigint AND state >= 2`,
    params: [topic, group, partition, belowId],
  }),

  /** As above. */
  setAside: ({ topic, group }, partition, fromId) => ({
    name: "setAside",
    text: `UPDATE message_redelivery SET state = state + 2, gmt_modified = ${NOW}
WHERE ${GROUP} AND partition_no = $3 AND message_id >= $4::bigint AND state < 2`,
    params: [topic, group, partition, fromId],
  }),

  countMessages: (topic, { month, partition, fromId, toId }) => ({
    name: "countMessages",
    text: `SELECT count(*)::text AS n FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = $1 AND m.message_id BETWEEN $2::bigint AND $3::bigint`,
    params: [partition, fromId, toId],
  }),

  countConsumed: ({ topic, group }, { month, partition, fromId, toId }) => ({
    name: "countConsumed",
    text: `SELECT (count(DISTINCT CASE WHEN r.last_message_id IS NULL THEN r.message_id END) + COALESCE(sum(CASE WHEN r.last_message_id IS NOT NULL THEN r.messages END), 0))::text AS n
FROM ${quoteName(recordTable(topic, month))} r
WHERE r.message_id BETWEEN $1::bigint AND $2::bigint AND r.consumer_group_id = $3 AND r.result = 0 AND r.message_id % 64 = $4::bigint`,
    params: [fromId, toId, group, partition],
  }),

  placesBefore: (topic, { month, partition, id, places }) => ({
    name: "placesBefore",
    text: `SELECT m.message_id::text AS id FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = $1 AND m.message_id < $2::bigint
ORDER BY m.message_id DESC LIMIT 1 OFFSET $3::bigint`,
    params: [partition, id, places - 1],
  }),

  placesBehind: (topic, { month, partition, id, places }) => ({
    name: "placesBehind",
    text: `SELECT m.message_id::text AS id FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = $1 AND m.message_id > $2::bigint
ORDER BY m.message_id LIMIT 1 OFFSET $3::bigint`,
    params: [partition, id, places - 1],
  }),

  passedMilestones: (topic, { month, partition, beforeId, limit }) => ({
    name: "passedMilestones",
    text: `SELECT count(*)::text AS n, max(m.message_id)::text AS id FROM (
  SELECT message_id FROM message_milestone
  WHERE topic_id = $1 AND partition_no = $2 AND message_id < $3::bigint AND message_id >=
    (SELECT min(i.message_id) FROM ${quoteName(infoTable(topic, month))} i WHERE i.partition_no = $2)
  ORDER BY message_id LIMIT $4::bigint) m`,
    params: [topic, partition, beforeId, limit],
  }),

  /** Locks the new row. Whoever inserts the same one waits, and leaves it as it is. */
  insertMilestone: (topic, { partition, id }) => ({
    name: "insertMilestone",
    text: `INSERT INTO message_milestone (topic_id, partition_no, message_id) VALUES ($1, $2, $3::bigint)
ON CONFLICT (topic_id, partition_no, message_id) DO NOTHING`,
    params: [topic, partition, id],
  }),
};
