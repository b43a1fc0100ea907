import {
  after,
  by,
  type Cold,
  cold,
  id,
  insertNew,
  joined,
  now,
  orNothing,
  plain,
  textOf,
  textsBy,
} from "../../databases/sql/cold.ts";
import { type GroupKey, ofGroup } from "../group-key.ts";
import type { GroupStart } from "../store.ts";

const DAY_MS = 86_400_000;

/**
 * One row per topic with a JSON object of last ids by partition and groupid NULL, and one per
 * paused group with counters NULL. Padded to a power of two to keep the number of texts small.
 * PostgreSQL plans a list of single parameters once; an array was planned each time, 0.15 ms
 * instead of 0.04.
 */
export function readCounters(topics: readonly string[]): Cold {
  const length = 2 ** Math.ceil(Math.log2(topics.length));
  const wanted = joined([...topics, ...Array.from({ length: length - topics.length }, () => topics[0] ?? "")], ", ");
  return cold("readCounters")`
SELECT c.topic_id AS topic, ${textsBy("c.partition_no", "c.last_id")} AS counters, NULL AS groupid
FROM message_topic_partition AS c${by("PRIMARY")} WHERE c.topic_id IN (${wanted}) GROUP BY c.topic_id
UNION ALL SELECT g.topic_id, NULL, g.consumer_group_id
FROM message_group AS g${by("PRIMARY")} WHERE g.topic_id IN (${wanted}) AND g.paused_at IS NOT NULL`;
}

/**
 * Two members that join at once meet at the primary key; existing rows stay. Records of a deleted
 * group stay: another round lets a group of the same name write its own.
 */
export function insertProgress({ topic, group }: GroupKey, start: GroupStart): Cold {
  const from =
    start === "end" ? plain("(c.last_id + 1) * 64 + c.partition_no") : id(start === "start" ? "0" : start.id);
  return cold("insertProgress")`
${insertNew} message_consumption (topic_id, consumer_group_id, partition_no, begin_message_id, next_message_id, message_date, round)
SELECT c.topic_id, ${group}, c.partition_no, ${from}, ${from}, 0,
  COALESCE((SELECT g.round FROM message_group AS g WHERE g.topic_id = c.topic_id AND g.consumer_group_id = ${group}), 0)
FROM message_topic_partition AS c WHERE c.topic_id = ${topic}${orNothing("topic_id, consumer_group_id, partition_no")}`;
}

export const readProgress = (key: GroupKey): Cold => cold("readProgress")`
SELECT partition_no AS partitionno, ${textOf("next_message_id")} AS nextid, round, ${textOf("epoch")} AS epoch
FROM message_consumption WHERE ${ofGroup(key)}`;

/** Oldest first. */
export const dueRedeliveries = (key: GroupKey, partition: number, limit: number): Cold => cold("dueRedeliveries")`
SELECT ${textOf("message_id")} AS id, attempt, first_attempt AS firstattempt, ordering_key AS orderingkey FROM message_redelivery
WHERE ${ofGroup(key)} AND partition_no = ${partition} AND state = 0 AND next_attempt_at <= ${now}
ORDER BY next_attempt_at LIMIT ${limit}`;

/** Locks the member's row until its own end. */
export const removeMember = (key: GroupKey, owner: string): Cold => cold("removeMember")`
DELETE FROM message_consumer WHERE ${ofGroup(key)} AND owner = ${owner}`;

/** Locks rows last seen over a day ago until its own end. */
export const forgetMembers = (key: GroupKey): Cold => cold("forgetMembers")`
DELETE FROM message_consumer WHERE ${ofGroup(key)} AND seen_at < ${after(-DAY_MS)}`;
