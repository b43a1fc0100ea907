/**
 * Leases of a group: a row of message_consumption for each partition, and the registry of members.
 */
import type { GroupKey } from "../../../queue/store.ts";
import type { HeldShard } from "../../../relay/store.ts";
import type { HoldingStatements } from "../../sql/statements.ts";
import { COMPANION_NOW as NOW, whole } from "../clock.ts";

const HELD = "JSON_TABLE(?, '$[*]' COLUMNS (partition_no INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j";
const OURS = "p.topic_id = ? AND p.consumer_group_id = ? AND p.partition_no = j.partition_no";
const MEMBER = "topic_id = ? AND consumer_group_id = ?";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  const held = (list: readonly HeldShard[]): string =>
    JSON.stringify(inOrder(list).map(({ shard, epoch }) => [shard, epoch]));
  return {
    ...memberStatements(key),

    /** Locks the rows that it writes; a takeover comes before or after, and changes the epoch. */
    renew: ({ owner, leaseMs, held: list }) => ({
      name: "renewPartitions",
      text: `UPDATE ${HELD}
  STRAIGHT_JOIN message_consumption AS p ON ${OURS}
  SET p.lease_until = ${NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND, p.lease_ms = ${whole(leaseMs)}
  WHERE p.owner = ? AND p.epoch = j.epoch`,
      params: [held(list), ...key, owner],
    }),

    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms
  FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),

    /**
     * Exactly as observed, or not at all. Waits for a settle of the old owner that is under way,
     * which holds this row; a later one finds the new epoch and changes nothing.
     */
    take: ({ owner, leaseMs, observed }) => ({
      name: "takePartitions",
      text: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
      partition_no INT PATH '$[0]', epoch BIGINT PATH '$[1]', owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[2]',
      lease_until DATETIME(3) PATH '$[3]')) AS j
  STRAIGHT_JOIN message_consumption AS p ON ${OURS}
  SET p.owner = ?, p.epoch = p.epoch + 1, p.taken_at = ${NOW}, p.lease_until = ${NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND, p.lease_ms = ${whole(leaseMs)}
  WHERE p.epoch = j.epoch AND p.owner <=> j.owner AND p.lease_until = j.lease_until`,
      params: [
        JSON.stringify(
          inOrder(observed).map(({ shard, epoch, owner: from, leaseUntil }) => [
            shard,
            epoch,
            from ?? null,
            leaseUntil,
          ]),
        ),
        ...key,
        owner,
      ],
    }),

    /** Another member may take the partition right after it; the epoch grows when one does. */
    release: ({ owner, shards }) => ({
      name: "releasePartitions",
      text: `UPDATE ${HELD}
  STRAIGHT_JOIN message_consumption AS p ON ${OURS}
  SET p.owner = NULL, p.lease_until = ${NOW}
  WHERE p.owner = ? AND p.epoch = j.epoch`,
      params: [held(shards), ...key, owner],
    }),
  };
}

type Members = Pick<HoldingStatements, "reportInstance" | "removeInstance" | "forgetInstances" | "readInstances">;

/** Each locks the row of one member until its own end. */
function memberStatements(key: readonly string[]): Members {
  return {
    reportInstance: ({ owner, label }) => ({
      name: "reportMember",
      text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at) VALUES (?, ?, ?, ?, ${NOW})
  ON DUPLICATE KEY UPDATE label = VALUES(label), seen_at = ${NOW}`,
      params: [...key, owner, label],
    }),
    removeInstance: (owner) => ({
      name: "removeMember",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND owner = ?`,
      params: [...key, owner],
    }),
    forgetInstances: () => ({
      name: "forgetMembers",
      text: `DELETE FROM message_consumer WHERE ${MEMBER} AND seen_at < ${NOW} - INTERVAL 24 HOUR`,
      params: key,
    }),
    // Both bounds: after the server's clock was set back, a dead member would else stay alive.
    readInstances: (timeoutMs) => ({
      name: "readMembers",
      text: `SELECT owner, label, seen_at BETWEEN ${NOW} - INTERVAL ${whole(timeoutMs)} * 1000 MICROSECOND
    AND ${NOW} + INTERVAL ${whole(timeoutMs)} * 1000 MICROSECOND AS alive
  FROM message_consumer WHERE ${MEMBER} ORDER BY owner`,
      params: key,
    }),
  };
}

/** Whoever locks several rows locks them in this order. */
function inOrder<Shard extends { readonly shard: number }>(list: readonly Shard[]): Shard[] {
  return [...list].sort((left, right) => left.shard - right.shard);
}
