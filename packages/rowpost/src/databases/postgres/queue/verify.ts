/** What the detector reads; it locks nothing. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { VerifyStatements } from "../../sql/queue/verify-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";

export const verify: VerifyStatements = {
  readGroups: (topic) => ({
    name: "readGroups",
    text: `SELECT consumer_group_id AS group_id, partition_no AS partitionno, begin_message_id::text AS beginid, next_message_id::text AS nextid, round
FROM message_consumption WHERE topic_id = $1`,
    params: [topic],
  }),

  // What was redelivered by hand has a negative attempt: that is no outcome.
  // OFFSET 0: looked up one by one; else every redelivery of the partition may be read.
  readChunk: ({ topic, group, month, partition, fromId, toId, limit }) => ({
    name: "readChunk",
    text: `SELECT m.message_id::text AS id, r.round AS round, r.last_message_id::text AS last_id, r.messages AS messages, CASE WHEN a.state < 2 THEN 1 ELSE 0 END AS again
FROM (SELECT i.message_id FROM ${quoteName(infoTable(topic, month))} i
  WHERE i.partition_no = $1 AND i.message_id BETWEEN $2::bigint AND $3::bigint ORDER BY i.message_id LIMIT $4::bigint) AS m
LEFT JOIN ${quoteName(recordTable(topic, month))} r ON r.message_id = m.message_id AND r.consumer_group_id = $5 AND r.attempt >= 0
LEFT JOIN LATERAL (SELECT d.state FROM message_redelivery d
  WHERE d.topic_id = $6 AND d.consumer_group_id = $5 AND d.partition_no = $1 AND d.message_id = m.message_id OFFSET 0) a ON true
ORDER BY m.message_id`,
    params: [partition, fromId, toId, limit, group, topic],
  }),
};
