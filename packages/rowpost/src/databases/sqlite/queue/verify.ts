/** What the detector reads; it locks nothing. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { VerifyStatements } from "../../sql/queue/verify-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";

export const verify: VerifyStatements = {
  readGroups: (topic) => ({
    name: "readGroups",
    text: `SELECT consumer_group_id AS group_id, partition_no AS partitionno, CAST(begin_message_id AS TEXT) AS beginid, CAST(next_message_id AS TEXT) AS nextid, round
FROM message_consumption WHERE topic_id = ?`,
    params: [topic],
  }),

  // What was redelivered by hand has a negative attempt: that is no outcome.
  readChunk: ({ topic, group, month, partition, fromId, toId, limit }) => ({
    name: "readChunk",
    text: `SELECT CAST(m.message_id AS TEXT) AS id, r.round AS round, CAST(r.last_message_id AS TEXT) AS last_id, r.messages AS messages, CASE WHEN a.state < 2 THEN 1 ELSE 0 END AS again
FROM (SELECT i.message_id FROM ${quoteName(infoTable(topic, month))} AS i
  WHERE i.partition_no = ? AND i.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER) ORDER BY i.message_id LIMIT ?) AS m
LEFT JOIN ${quoteName(recordTable(topic, month))} AS r ON r.message_id = m.message_id AND r.consumer_group_id = ? AND r.attempt >= 0
LEFT JOIN message_redelivery AS a ON a.topic_id = ? AND a.consumer_group_id = ? AND a.partition_no = ? AND a.message_id = m.message_id
ORDER BY m.message_id`,
    params: [partition, fromId, toId, limit, group, topic, group, partition],
  }),
};
