import type { GroupKey } from "../../../queue/store.ts";
import type { HeldShard } from "../../../relay/store.ts";
import type { BeatStatements, HoldingStatements } from "../../sql/queue/statements.ts";
import { keyRows } from "../../sql/queue/values.ts";
import { after, isoText, msSince, NOW } from "../names.ts";

const MEMBER = "topic_id = ? AND consumer_group_id = ?";
/** Partition and epoch match one entry of a parameter. */
const AS_HELD =
  "EXISTS (SELECT 1 FROM json_each(?) WHERE json_extract(value, '$[0]') = partition_no AND json_extract(value, '$[1]') = epoch)";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  const held = (list: readonly HeldShard[]): string => JSON.stringify(list.map(({ shard, epoch }) => [shard, epoch]));
  return {
    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, CAST(epoch AS TEXT) AS epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),
    // Takes the partitions exactly as observed or not at all; the transaction has the file's only
    // write lock.
    take: ({ owner, leaseMs, observed }) => ({
      name: "takePartitions",
      text: `UPDATE message_consumption SET owner = ?, epoch = epoch + 1, taken_at = ${NOW}, lease_until = ${after("?")}, lease_ms = ?
WHERE ${MEMBER} AND EXISTS (SELECT 1 FROM json_each(?) WHERE json_extract(value, '$[0]') = partition_no AND json_extract(value, '$[1]') = epoch
  AND json_extract(value, '$[2]') IS message_consumption.owner AND json_extract(value, '$[3]') = ${isoText("lease_until")})`,
      params: [
        owner,
        leaseMs,
        leaseMs,
        ...key,
        JSON.stringify(
          observed.map(({ shard, epoch, owner: from, leaseUntil }) => [shard, epoch, from ?? null, leaseUntil]),
        ),
      ],
    }),
    release: ({ owner, shards }) => ({
      name: "releasePartitions",
      text: `UPDATE message_consumption SET owner = NULL, lease_until = ${NOW} WHERE ${MEMBER} AND owner = ? AND ${AS_HELD}`,
      params: [...key, owner, held(shards)],
    }),
  };
}

const field = (place: number): string => `json_extract(j.value, '$[${place}]')`;
const OF_KEY = `p.topic_id = ${field(0)} AND p.consumer_group_id = ${field(1)}`;

export const beats: BeatStatements = {
  reportMembers: (members) => ({
    name: "reportMembers",
    text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at)
SELECT ${[0, 1, 2, 3].map(field).join(", ")}, ${NOW} FROM json_each(?) AS j WHERE true
ON CONFLICT (topic_id, consumer_group_id, owner) DO UPDATE SET label = excluded.label, seen_at = excluded.seen_at`,
    params: [JSON.stringify(members.map(({ key: { topic, group }, owner, label }) => [topic, group, owner, label]))],
  }),

  // There is no other writer meanwhile, so no row is locked. An UPDATE … FROM would read the list
  // anew for each row of the table.
  renewPartitions: (members) => ({
    name: "renewPartitions",
    text: `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, next_message_id, message_date, lease_until, lease_ms)
SELECT p.topic_id, p.consumer_group_id, p.partition_no, p.next_message_id, p.message_date, ${after(field(5))}, ${field(5)}
FROM json_each(?) AS j CROSS JOIN message_consumption AS p
WHERE ${OF_KEY} AND p.partition_no = ${field(2)} AND p.epoch = ${field(3)} AND p.owner = ${field(4)}
ON CONFLICT (topic_id, consumer_group_id, partition_no) DO UPDATE SET lease_until = excluded.lease_until, lease_ms = excluded.lease_ms`,
    params: [
      JSON.stringify(
        members.flatMap(({ key: { topic, group }, owner, leaseMs, held }) =>
          held.map(({ shard, epoch }) => [topic, group, shard, Number(epoch), owner, leaseMs]),
        ),
      ),
    ],
  }),

  readPartitions: (keys) => ({
    name: "readPartitions",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.partition_no AS shard, p.owner AS owner, CAST(p.epoch AS TEXT) AS epoch,
  ${isoText("p.lease_until")} AS lease_until, p.lease_ms AS lease_ms
FROM json_each(?) AS j CROSS JOIN message_consumption AS p ON ${OF_KEY}`,
    params: [keyRows(keys)],
  }),

  readMembers: (keys) => ({
    name: "readMembers",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.owner AS owner, p.label AS label, ${msSince("p.seen_at")} AS silent_ms
FROM json_each(?) AS j CROSS JOIN message_consumer AS p ON ${OF_KEY}`,
    params: [keyRows(keys)],
  }),
};
