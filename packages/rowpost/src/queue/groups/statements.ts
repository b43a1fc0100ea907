import {
  andRing,
  behind,
  by,
  type Cold,
  cold,
  forUpdate,
  id,
  insertNew,
  instant,
  iso,
  joined,
  lookUp,
  msSince,
  now,
  orNothing,
  part,
  plain,
  quoted,
  type Sql,
  textOf,
} from "../../databases/sql/cold.ts";
import { type GROUP_TABLES, infoTable } from "../../databases/sql/queue/names.ts";
import { BEHIND_UNTIL } from "../../databases/sql/queue/values.ts";
import { type GroupKey, ofGroup } from "../group-key.ts";

/** Both ends included. */
export interface UnreadRange {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
}

const isBehind = part`next_attempt_at >= ${instant(BEHIND_UNTIL)}`;
const isWithin = ({ partition, fromId, toId }: UnreadRange): Sql =>
  part`partition_no = ${partition} AND message_id BETWEEN ${id(fromId)} AND ${id(toId)}`;
const theseOf = (key: GroupKey, partition: number, ids: readonly string[]): Sql =>
  part`${ofGroup(key)} AND partition_no = ${partition} AND message_id IN (${joined(ids.map(id), ", ")})`;

/** Two members that join at once meet at the key; a paused group stays paused. */
export const putGroup = ({ topic, group }: GroupKey): Cold => cold("putGroup")`
${insertNew} message_group (topic_id, consumer_group_id) VALUES (${topic}, ${group})${orNothing("topic_id, consumer_group_id")}`;

/**
 * Locks the group's row until its own end. Members read it before their reads, except after hearing
 * of an append.
 */
export const pause = (key: GroupKey, author: string, reason: string): Cold => cold("pause")`
UPDATE message_group SET paused_at = ${now}, paused_by = ${author}, pause_reason = ${reason} WHERE ${ofGroup(key)} AND paused_at IS NULL${andRing}`;

/** Locks the group's row until its own end. */
export const resume = (key: GroupKey): Cold => cold("resume")`
UPDATE message_group SET paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${ofGroup(key)} AND paused_at IS NOT NULL`;

/** One row per partition, in order. */
export const readGroups = (topic: string, group: string | undefined): Cold => cold("readGroups")`
SELECT p.consumer_group_id AS group_id, p.partition_no, ${textOf("p.next_message_id")} AS next_id, ${textOf("c.last_id * 64 + c.partition_no")} AS last_id,
  p.round, p.owner, m.label, ${iso("p.taken_at")} AS held_since, ${msSince("p.update_time")} AS moved_ms,
  ${msSince("m.seen_at")} AS seen_ms, ${iso("g.paused_at")} AS paused_at, g.paused_by, g.pause_reason
FROM message_consumption AS p
${lookUp("JOIN", "message_topic_partition", "c", part`c.topic_id = p.topic_id AND c.partition_no = p.partition_no`)}
${lookUp("LEFT JOIN", "message_consumer", "m", part`m.topic_id = p.topic_id AND m.consumer_group_id = p.consumer_group_id AND m.owner = p.owner`)}
${lookUp("LEFT JOIN", "message_group", "g", part`g.topic_id = p.topic_id AND g.consumer_group_id = p.consumer_group_id`)}
WHERE p.topic_id = ${topic}${group === undefined ? plain("") : part` AND p.consumer_group_id = ${group}`}
ORDER BY p.consumer_group_id, p.partition_no`;

export const countMessages = (range: UnreadRange, limit: number): Cold => cold("countMessages")`
SELECT count(*) AS n FROM (SELECT 1 AS one FROM ${quoted(infoTable(range.topic, range.month))}${by("PRIMARY")} WHERE ${isWithin(range)} LIMIT ${limit}) AS unread`;

export const firstMessage = (range: UnreadRange): Cold => cold("firstMessage")`
SELECT ${textOf("message_id")} AS id, message_key, message_type
FROM ${quoted(infoTable(range.topic, range.month))}${by("PRIMARY")} WHERE ${isWithin(range)} ORDER BY message_id LIMIT 1`;

/** Of the first `limit` rows. */
export const countRedeliveries = (key: GroupKey, partition: number, limit: number): Cold => cold("countRedeliveries")`
SELECT count(CASE WHEN state = 0 AND NOT behind THEN 1 END) AS waiting, count(CASE WHEN state = 0 AND behind THEN 1 END) AS behind,
  count(CASE WHEN state = 1 THEN 1 END) AS dead, ${textOf("min(CASE WHEN state = 0 THEN message_id END)")} AS oldest
FROM (SELECT message_id, state, ${isBehind} AS behind FROM message_redelivery${by("PRIMARY")}
  WHERE ${ofGroup(key)} AND partition_no = ${partition} ORDER BY message_id LIMIT ${limit}) AS counted`;

type After = { readonly partition: number; readonly id: string };

/** Ordered by partition and id. */
export const pageRedeliveries = (key: GroupKey, after: After, limit: number): Cold => cold("pageRedeliveries")`
SELECT ${textOf("message_id")} AS id, partition_no, state, attempt, first_attempt, ${iso("next_attempt_at")} AS next_attempt_at,
  CASE WHEN ${isBehind} THEN 1 ELSE 0 END AS behind, fail_reason, ordering_key, ${iso("gmt_modified")} AS changed_at
FROM message_redelivery${by("PRIMARY")}
WHERE ${ofGroup(key)} AND ${behind([
  ["partition_no", after.partition],
  ["message_id", id(after.id)],
])}
ORDER BY partition_no, message_id LIMIT ${limit}`;

/** No settle or takeover of this partition until the transaction ends. */
export const lockPartition = (key: GroupKey, partition: number): Cold => cold("lockPartition")`
SELECT ${textOf("next_message_id")} AS nextid, round FROM message_consumption WHERE ${ofGroup(key)} AND partition_no = ${partition}${forUpdate}`;

/** In the transaction that holds the row's lock. Fences out the partition's owner. */
export const passHead = (key: GroupKey, partition: number, next: { id: string; month: number }): Cold => cold(
  "passHead",
)`
UPDATE message_consumption SET next_message_id = ${id(next.id)}, message_date = ${next.month}, epoch = epoch + 1, update_time = ${now}
WHERE ${ofGroup(key)} AND partition_no = ${partition}`;

/** Under the lock of the progress. */
export const lockRedeliveries = (...of: Parameters<typeof theseOf>): Cold => cold("lockRedeliveries")`
SELECT ${textOf("message_id")} AS id, state, attempt, ordering_key AS orderingkey, CASE WHEN ${isBehind} THEN 1 ELSE 0 END AS behind
FROM message_redelivery WHERE ${theseOf(...of)} ORDER BY message_id${forUpdate}`;

/**
 * In the transaction that holds the locks. A dead letter gets all its attempts again. The state
 * comes last, because the other assignments read it.
 */
export const redeliverNow = (...of: Parameters<typeof theseOf>): Cold => cold("redeliverNow")`
UPDATE message_redelivery
SET first_attempt = CASE WHEN state = 1 THEN attempt ELSE first_attempt END, next_attempt_at = ${now}, gmt_modified = ${now}, state = 0
WHERE ${theseOf(...of)}`;

/**
 * Removes the pause; a group of the same name begins in this round. Under the locks of the group's
 * progress, so settles and takeovers wait. If the process dies right after it, nothing is deleted.
 */
export const forgetGroup = (key: GroupKey, round: number): Cold => cold("forgetGroup")`
UPDATE message_group SET round = ${round}, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE ${ofGroup(key)}`;

/** Runs in the transaction of forgetGroup, the group's progress first. */
export const deleteRows = (table: (typeof GROUP_TABLES)[number], key: GroupKey): Cold => cold("deleteGroup")`
DELETE FROM ${plain(table)} WHERE ${ofGroup(key)}`;
