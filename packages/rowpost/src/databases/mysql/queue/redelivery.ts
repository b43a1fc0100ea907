/** Written in the transaction that has locked the partition's progress. */
import type { RedeliveryStatements } from "../../sql/queue/statements.ts";
import { BEHIND_UNTIL, endsRedelivery, keyRows, redeliveryRows } from "../../sql/queue/values.ts";
import { NOT_SAFE, COMPANION_NOW as NOW, whole } from "../clock.ts";
import { BYTES } from "./schema.ts";

const AGAIN = `JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', state INT PATH '$[1]', attempt INT PATH '$[2]', due_ms BIGINT PATH '$[3]',
    fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]', ordering_key VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[5]')) AS j`;
const DUE = `COALESCE(${NOW} + INTERVAL j.due_ms * 1000 MICROSECOND, TIMESTAMP'${BEHIND_UNTIL}')`;
const KEYS = `JSON_TABLE(?, '$[*]' COLUMNS (ordering_key VARCHAR(128) ${BYTES} PATH '$')) AS j`;

export const redelivery: RedeliveryStatements = {
  /**
   * Locks the rows it writes; while the progress row is locked, no other transaction writes them.
   */
  putRedeliveries: ({ topic, group }, partition, redeliveries) => ({
    name: "putRedeliveries",
    text: `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, next_attempt_at, fail_reason, ordering_key, gmt_create, gmt_modified)
  SELECT ?, ?, ${whole(partition)}, j.id, j.state, j.attempt, ${DUE}, j.fail_reason, j.ordering_key, ${NOW}, ${NOW}
  FROM ${AGAIN}
  ON DUPLICATE KEY UPDATE state = VALUES(state), attempt = VALUES(attempt), first_attempt = 0, next_attempt_at = VALUES(next_attempt_at),
    fail_reason = VALUES(fail_reason), ordering_key = VALUES(ordering_key), gmt_modified = ${NOW}`,
    params: [topic, group, redeliveryRows(redeliveries)],
  }),

  /** Locks like putRedeliveries. A skipped or discarded message does not come back. */
  changeRedeliveries: ({ topic, group }, partition, redeliveries) => ({
    name: "changeRedeliveries",
    text: `${NOT_SAFE}UPDATE ${AGAIN}
  STRAIGHT_JOIN message_redelivery AS r ON r.topic_id = ? AND r.consumer_group_id = ? AND r.partition_no = ${whole(partition)} AND r.message_id = j.id
  SET r.next_attempt_at = ${DUE}, r.fail_reason = j.fail_reason, r.ordering_key = j.ordering_key, r.gmt_modified = ${NOW}, r.state = j.state, r.attempt = j.attempt
  WHERE r.state = 0 AND ${endsRedelivery("r", "j.attempt")}`,
    params: [redeliveryRows(redeliveries), topic, group],
  }),

  /** Locks like putRedeliveries. */
  deleteRedeliveries: ({ topic, group }, partition, ids) => ({
    name: "deleteRedeliveries",
    text: `${NOT_SAFE}DELETE r FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN message_redelivery AS r ON r.topic_id = ? AND r.consumer_group_id = ? AND r.partition_no = ${whole(partition)} AND r.message_id = j.id`,
    params: [`[${ids.join(",")}]`, topic, group],
  }),

  /** Locks like putRedeliveries, so no message gets in front of the first one during the lookup. */
  releaseKeys: ({ topic, group }, partition, orderingKeys) => ({
    name: "releaseKeys",
    text: `${NOT_SAFE}UPDATE (SELECT MIN(w.message_id) AS id FROM ${KEYS}
    STRAIGHT_JOIN message_redelivery AS w FORCE INDEX (i_key) ON w.topic_id = ? AND w.consumer_group_id = ? AND w.partition_no = ${whole(partition)} AND w.ordering_key = j.ordering_key
    WHERE w.state = 0 GROUP BY w.ordering_key) AS head
  STRAIGHT_JOIN message_redelivery AS r ON r.topic_id = ? AND r.consumer_group_id = ? AND r.partition_no = ${whole(partition)} AND r.message_id = head.id
  SET r.next_attempt_at = ${NOW}
  WHERE r.next_attempt_at >= TIMESTAMP'${BEHIND_UNTIL}'`,
    params: [JSON.stringify(orderingKeys), topic, group, topic, group],
  }),

  heldUpKeys: ({ topic, group }, partition, orderingKeys) => ({
    name: "heldUpKeys",
    text: `SELECT j.ordering_key AS orderingkey FROM ${KEYS}
  WHERE EXISTS (SELECT 1 FROM message_redelivery AS r FORCE INDEX (i_key) WHERE r.topic_id = ? AND r.consumer_group_id = ? AND r.partition_no = ${whole(partition)}
    AND r.ordering_key = j.ordering_key AND r.state = 0)`,
    params: [JSON.stringify(orderingKeys), topic, group],
  }),

  // One index row per partition.
  firstDue: (keys) => ({
    name: "firstDue",
    text: `SELECT topic, groupid, partitionno, TIMESTAMPDIFF(MICROSECOND, ${NOW}, due_at) DIV 1000 AS dueinms
  FROM (SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.partition_no AS partitionno,
      (SELECT MIN(r.next_attempt_at) FROM message_redelivery AS r FORCE INDEX (i_due)
        WHERE r.topic_id = p.topic_id AND r.consumer_group_id = p.consumer_group_id AND r.partition_no = p.partition_no AND r.state = 0) AS due_at
    FROM JSON_TABLE(?, '$[*]' COLUMNS (topic_id VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]', consumer_group_id VARCHAR(64) ${BYTES} PATH '$[1]')) AS j
    STRAIGHT_JOIN message_consumption AS p ON p.topic_id = j.topic_id AND p.consumer_group_id = j.consumer_group_id) AS heads
  WHERE due_at IS NOT NULL`,
    params: [keyRows(keys)],
  }),
};
