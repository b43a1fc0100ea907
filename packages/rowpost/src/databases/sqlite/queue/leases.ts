/**
 * Leases of a group: a row of message_consumption for each partition, and the registry of members.
 */
import type { GroupKey } from "../../../queue/store.ts";
import type { HeldShard } from "../../../relay/store.ts";
import type { HoldingStatements } from "../../sql/statements.ts";
import { after, before, isoText, NOW } from "../names.ts";

const MEMBER = "topic_id = ? AND consumer_group_id = ?";
/** Partition and epoch as one of these; a parameter. */
const AS_HELD =
  "EXISTS (SELECT 1 FROM json_each(?) WHERE json_extract(value, '$[0]') = partition_no AND json_extract(value, '$[1]') = epoch)";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  const held = (list: readonly HeldShard[]): string => JSON.stringify(list.map(({ shard, epoch }) => [shard, epoch]));
  return {
    reportInstance: ({ owner, label }) => ({
      name: "reportMember",
      text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at) VALUES (?, ?, ?, ?, ${NOW})
ON CONFLICT (topic_id, consumer_group_id, owner) DO UPDATE SET label = excluded.label, seen_at = excluded.seen_at`,
      params: [...key, owner, label],
    }),
    forgetInstances: () => ({
      name: "forgetMembers",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND seen_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')`,
      params: key,
    }),
    // Both bounds: after the clock was set back, a dead member would else stay alive.
    readInstances: (timeoutMs) => ({
      name: "readMembers",
      text: `SELECT owner, label, seen_at BETWEEN ${before("?")} AND ${after("?")} AS alive FROM message_consumer WHERE ${MEMBER} ORDER BY owner`,
      params: [timeoutMs, timeoutMs, ...key],
    }),
    renew: ({ owner, leaseMs, held: list }) => ({
      name: "renewPartitions",
      text: `UPDATE message_consumption SET lease_until = ${after("?")}, lease_ms = ? WHERE ${MEMBER} AND owner = ? AND ${AS_HELD}`,
      params: [leaseMs, leaseMs, ...key, owner, held(list)],
    }),
    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, CAST(epoch AS TEXT) AS epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),
    removeInstance: (owner) => ({
      name: "removeMember",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND owner = ?`,
      params: [...key, owner],
    }),
    // Exactly as observed, or not at all; the transaction has the file's only write lock.
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
