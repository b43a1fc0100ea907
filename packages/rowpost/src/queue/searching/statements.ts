/** Statements of searches, without locks. */
import {
  branch,
  by,
  type Cold,
  cold,
  id,
  iso,
  joined,
  part,
  plain,
  quoted,
  type Sql,
  textOf,
} from "../../databases/sql/cold.ts";
import { infoTable, recordTable } from "../../databases/sql/queue/names.ts";
import { partitionOfId } from "../../message/queue-id.ts";

export interface Spot {
  readonly topic: string;
  readonly month: number;
  readonly id: string;
}

/** Ids of a month, both ends included. */
interface Range {
  readonly topic: string;
  readonly month: number;
  readonly fromId: string;
  readonly toId: string;
  readonly limit: number;
}

const COLUMNS = part`${textOf("m.message_id")} AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key, ${iso("m.deliver_at")} AS deliver_at,
  m.ip AS ip, m.port AS port, m.producer_group AS producer_group`;

export const readTopic = (topic: string): Cold => cold("readTopic")`
SELECT partitions, ${iso("gmt_create")} AS created FROM message_topic WHERE topic_id = ${topic}`;

/** Newest first. */
export const searchKey = ({ topic, month, key, fromId, toId, limit }: Range & { key: string }): Cold => cold(
  "searchKey",
)`
SELECT ${COLUMNS} FROM ${quoted(infoTable(topic, month))} AS m${by("i_message_key")}
WHERE m.message_key = ${key} AND m.message_id BETWEEN ${id(fromId)} AND ${id(toId)}
ORDER BY m.message_id DESC LIMIT ${limit}`;

/** The newest `limit` of each partition. */
export function walk({ topic, month, partitions, fromId, toId, limit }: Range & { partitions: number }): Cold {
  const newestOf = (partition: number): Sql => part`
SELECT ${COLUMNS} FROM ${quoted(infoTable(topic, month))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${plain(String(partition))} AND m.message_id BETWEEN ${id(fromId)} AND ${id(toId)}
ORDER BY m.message_id DESC LIMIT ${limit}`;
  const all = Array.from({ length: partitions }, (_, partition) => branch(newestOf(partition)));
  return cold("walk")`${joined(all, "\nUNION ALL\n")}`;
}

export const readMessage = ({ topic, month, id: of }: Spot): Cold => cold("readMessage")`
SELECT ${COLUMNS}, m.message_data AS message_data FROM ${quoted(infoTable(topic, month))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${partitionOfId(of)} AND m.message_id = ${id(of)}`;

/** Includes batches from `fromId` on that contain the message. */
export const readRecords = ({ topic, month, id: of, fromId }: Spot & { fromId: string }): Cold => cold("readRecords")`
SELECT ${textOf("r.message_id")} AS id, r.consumer_group_id AS group_id, r.round AS round, r.attempt AS attempt,
  ${textOf("r.last_message_id")} AS last_id, r.messages AS messages, r.ip AS ip, r.port AS port, r.instance AS instance,
  ${iso("r.consumption_time")} AS consumed_at, r.result AS result, r.duration_ms AS duration_ms, r.error AS error
FROM ${quoted(recordTable(topic, month))} AS r${by("PRIMARY")}
WHERE r.message_id BETWEEN ${id(fromId)} AND ${id(of)} AND (r.message_id = ${id(of)} OR r.last_message_id >= ${id(of)})
  AND r.message_id % 64 = ${partitionOfId(of)}
ORDER BY r.message_id, r.consumer_group_id, r.round, r.attempt`;

export const readPlaces = (topic: string, of: string): Cold => cold("readPlaces")`
SELECT p.consumer_group_id AS group_id, ${textOf("p.next_message_id")} AS next_id, p.round AS round,
  a.state AS state, a.attempt AS attempt, ${iso("a.next_attempt_at")} AS next_attempt_at, a.fail_reason AS fail_reason
FROM message_consumption AS p
LEFT JOIN message_redelivery AS a ON a.topic_id = p.topic_id AND a.consumer_group_id = p.consumer_group_id
  AND a.partition_no = p.partition_no AND a.message_id = ${id(of)}
WHERE p.topic_id = ${topic} AND p.partition_no = ${partitionOfId(of)} ORDER BY p.consumer_group_id`;
