/**
 * Leases of a group: a row of message_consumption for each partition, and the registry of members.
 */
import type { GroupKey } from "../../../queue/store.ts";
import type { HoldingStatements } from "../../sql/statements.ts";
import { after, isoText, NOW, numberArray, textArray } from "../names.ts";

const MEMBER = "topic_id = $1 AND consumer_group_id = $2";
const OURS = "p.topic_id = $1 AND p.consumer_group_id = $2";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  return {
    ...memberStatements(key),
    ...takeStatement(key),

    /** Locks the rows that it writes; a takeover comes before or after, and changes the epoch. */
    renew: ({ owner, leaseMs, held }) => ({
      name: "renewPartitions",
      text: `UPDATE message_consumption p
SET lease_until = ${after("$4::bigint")}, lease_ms = $4::bigint
FROM unnest($5::integer[], $6::bigint[]) AS held (partition_no, epoch)
WHERE ${OURS} AND p.owner = $3 AND p.partition_no = held.partition_no AND p.epoch = held.epoch`,
      params: [
        ...key,
        owner,
        leaseMs,
        numberArray(held.map(({ shard }) => shard)),
        numberArray(held.map(({ epoch }) => epoch)),
      ],
    }),

    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),

    /** Another member may take the partition right after it; the epoch grows when one does. */
    release: ({ owner, shards }) => ({
      name: "releasePartitions",
      text: `UPDATE message_consumption p
SET owner = NULL, lease_until = ${NOW}
FROM unnest($4::integer[], $5::bigint[]) AS held (partition_no, epoch)
WHERE ${OURS} AND p.owner = $3 AND p.partition_no = held.partition_no AND p.epoch = held.epoch`,
      params: [
        ...key,
        owner,
        numberArray(shards.map(({ shard }) => shard)),
        numberArray(shards.map(({ epoch }) => epoch)),
      ],
    }),
  };
}

function takeStatement(key: readonly string[]): Pick<HoldingStatements, "take"> {
  return {
    /**
     * Exactly as observed, or not at all, in order of the partitions. Waits for a settle of the old
     * owner that is under way, which holds this row; a later one finds the new epoch and changes
     * nothing.
     */
    take: ({ owner, leaseMs, observed }) => ({
      name: "takePartitions",
      text: `WITH free AS MATERIALIZED (
  SELECT p.partition_no
  FROM message_consumption p
  JOIN unnest($5::integer[], $6::bigint[], $7::text[], $8::text[]) AS observed (partition_no, epoch, owner, lease_until)
    ON observed.partition_no = p.partition_no AND observed.epoch = p.epoch
  WHERE ${OURS} AND p.owner IS NOT DISTINCT FROM observed.owner AND ${isoText("p.lease_until")} = observed.lease_until
  ORDER BY p.partition_no
  FOR UPDATE OF p)
UPDATE message_consumption p
SET owner = $3, epoch = p.epoch + 1, taken_at = ${NOW}, lease_until = ${after("$4::bigint")}, lease_ms = $4::bigint
FROM free
WHERE ${OURS} AND p.partition_no = free.partition_no`,
      params: [
        ...key,
        owner,
        leaseMs,
        numberArray(observed.map(({ shard }) => shard)),
        numberArray(observed.map(({ epoch }) => epoch)),
        textArray(observed.map(({ owner: from }) => from ?? null)),
        textArray(observed.map(({ leaseUntil }) => leaseUntil)),
      ],
    }),
  };
}

type Members = Pick<HoldingStatements, "reportInstance" | "removeInstance" | "forgetInstances" | "readInstances">;

/** Each locks the row of one member until its own end. */
function memberStatements(key: readonly string[]): Members {
  // Both bounds: after the server's clock was set back, a dead member would else stay alive.
  const timeout = "$3::bigint * interval '1 millisecond'";
  return {
    reportInstance: ({ owner, label }) => ({
      name: "reportMember",
      text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at) VALUES ($1, $2, $3, $4, ${NOW})
ON CONFLICT (topic_id, consumer_group_id, owner) DO UPDATE SET label = EXCLUDED.label, seen_at = EXCLUDED.seen_at`,
      params: [...key, owner, label],
    }),
    removeInstance: (owner) => ({
      name: "removeMember",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND owner = $3`,
      params: [...key, owner],
    }),
    forgetInstances: () => ({
      name: "forgetMembers",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND seen_at < ${NOW} - interval '1 day'`,
      params: key,
    }),
    readInstances: (timeoutMs) => ({
      name: "readMembers",
      text: `SELECT owner, label, CASE WHEN seen_at BETWEEN ${NOW} - ${timeout} AND ${NOW} + ${timeout} THEN 1 ELSE 0 END AS alive
FROM message_consumer WHERE ${MEMBER} ORDER BY owner`,
      params: [...key, timeoutMs],
    }),
  };
}
