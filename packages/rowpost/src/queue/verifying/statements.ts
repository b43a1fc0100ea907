/** Statements of the detector, without locks. */
import { by, type Cold, cold, id, lookUp, part, quoted, textOf } from "../../databases/sql/cold.ts";
import { infoTable, recordTable } from "../../databases/sql/queue/names.ts";

/** Both ends included. */
export interface VerifyChunk {
  readonly topic: string;
  readonly group: string;
  readonly month: number;
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
  readonly limit: number;
}

export const readGroups = (topic: string): Cold => cold("readGroups")`
SELECT consumer_group_id AS group_id, partition_no AS partitionno, ${textOf("begin_message_id")} AS beginid, ${textOf("next_message_id")} AS nextid, round
FROM message_consumption WHERE topic_id = ${topic}`;

/**
 * One row per record, or one without. A redelivery by hand has a negative attempt and is no
 * outcome.
 */
export const readChunk = ({ topic, group, month, partition, fromId, toId, limit }: VerifyChunk): Cold => cold(
  "readChunk",
)`
SELECT ${textOf("m.message_id")} AS id, r.round AS round, ${textOf("r.last_message_id")} AS last_id, r.messages AS messages, CASE WHEN a.state < 2 THEN 1 ELSE 0 END AS again
FROM (SELECT i.message_id FROM ${quoted(infoTable(topic, month))} AS i${by("PRIMARY")}
  WHERE i.partition_no = ${partition} AND i.message_id BETWEEN ${id(fromId)} AND ${id(toId)} ORDER BY i.message_id LIMIT ${limit}) AS m
LEFT JOIN ${quoted(recordTable(topic, month))} AS r ON r.message_id = m.message_id AND r.consumer_group_id = ${group} AND r.attempt >= 0
${lookUp("LEFT JOIN", "message_redelivery", "a", part`a.topic_id = ${topic} AND a.consumer_group_id = ${group} AND a.partition_no = ${partition} AND a.message_id = m.message_id`)}
ORDER BY m.message_id`;
