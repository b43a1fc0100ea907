import type { GroupKey } from "../../../queue/store.ts";
import type { HeldShard } from "../../../relay/store.ts";
import type { BeatStatements, HoldingStatements } from "../../sql/queue/statements.ts";
import { inOrder as byKey, keyRows } from "../../sql/queue/values.ts";
import { COMPANION_NOW as NOW, whole } from "../clock.ts";
import { BYTES } from "./schema.ts";

const HELD = "JSON_TABLE(?, '$[*]' COLUMNS (partition_no INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j";
const OURS = "p.topic_id = ? AND p.consumer_group_id = ? AND p.partition_no = j.partition_no";
const MEMBER = "topic_id = ? AND consumer_group_id = ?";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  const held = (list: readonly HeldShard[]): string =>
    JSON.stringify(inOrder(list).map(({ shard, epoch }) => [shard, epoch]));
  return {
    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms
  FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),

    /**
     * Takes the partitions exactly as observed or not at all. Waits for a running settle of the old
     * owner, which holds this row; a later one finds the new epoch and changes nothing.
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

    /** Another member may take the partition right after it, which raises the epoch. */
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

const KEY_COLUMNS = `topic_id VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]', consumer_group_id VARCHAR(64) ${BYTES} PATH '$[1]'`;
const KEYS = `JSON_TABLE(?, '$[*]' COLUMNS (${KEY_COLUMNS})) AS j`;
const OF_KEY = "p.topic_id = j.topic_id AND p.consumer_group_id = j.consumer_group_id";
const OWNER = "owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin";

export const beats: BeatStatements = {
  /** Locks the rows of these members in one order until it ends; no other statement writes them. */
  reportMembers: (members) => ({
    name: "reportMembers",
    text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at)
  SELECT j.topic_id, j.consumer_group_id, j.owner, j.label, ${NOW}
  FROM JSON_TABLE(?, '$[*]' COLUMNS (${KEY_COLUMNS}, ${OWNER} PATH '$[2]', label VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[3]')) AS j
  ON DUPLICATE KEY UPDATE label = VALUES(label), seen_at = VALUES(seen_at)`,
    params: [
      JSON.stringify(byKey(members).map(({ key: { topic, group }, owner, label }) => [topic, group, owner, label])),
    ],
  }),

  /**
   * Locks the rows it writes until it ends; a takeover changes the epoch. With "skip", a locked row
   * does not delay the other groups; FORCE INDEX, because a scan of a small table would wait
   * anyway. If we die right after it, the leases last a little longer.
   */
  renewPartitions: (members, locked) => ({
    name: "renewPartitions",
    text: `UPDATE (SELECT p.topic_id AS topic_id, p.consumer_group_id AS consumer_group_id, p.partition_no AS partition_no, j.lease_ms AS lease_ms
    FROM JSON_TABLE(?, '$[*]' COLUMNS (${KEY_COLUMNS}, partition_no INT PATH '$[2]', epoch BIGINT PATH '$[3]', ${OWNER} PATH '$[4]', lease_ms BIGINT PATH '$[5]')) AS j
    STRAIGHT_JOIN message_consumption AS p FORCE INDEX (PRIMARY) ON ${OF_KEY} AND p.partition_no = j.partition_no
    WHERE p.owner = j.owner AND p.epoch = j.epoch
    LIMIT ${MOST_RENEWED} FOR UPDATE /*!80000 OF p */${locked === "skip" ? " SKIP LOCKED" : ""}) AS held
  STRAIGHT_JOIN message_consumption AS r FORCE INDEX (PRIMARY)
    ON r.topic_id = held.topic_id AND r.consumer_group_id = held.consumer_group_id AND r.partition_no = held.partition_no
  SET r.lease_until = ${NOW} + INTERVAL held.lease_ms * 1000 MICROSECOND, r.lease_ms = held.lease_ms`,
    params: [
      JSON.stringify(
        byKey(members).flatMap(({ key: { topic, group }, owner, leaseMs, held }) =>
          inOrder(held).map(({ shard, epoch }) => [topic, group, shard, epoch, owner, leaseMs]),
        ),
      ),
    ],
  }),

  readPartitions: (keys) => ({
    name: "readPartitions",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.partition_no AS shard, p.owner AS owner, p.epoch AS epoch,
    CAST(p.lease_until AS CHAR) AS lease_until, p.lease_ms AS lease_ms
  FROM ${KEYS} STRAIGHT_JOIN message_consumption AS p FORCE INDEX (PRIMARY) ON ${OF_KEY}`,
    params: [keyRows(keys)],
  }),

  readMembers: (keys) => ({
    name: "readMembers",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.owner AS owner, p.label AS label,
    TIMESTAMPDIFF(MICROSECOND, p.seen_at, ${NOW}) DIV 1000 AS silent_ms
  FROM ${KEYS} STRAIGHT_JOIN message_consumer AS p FORCE INDEX (PRIMARY) ON ${OF_KEY}`,
    params: [keyRows(keys)],
  }),
};

/** Without a LIMIT the optimizer merges the sub-query into the UPDATE, which then blocks. */
const MOST_RENEWED = 1_000_000;

/** The order in which every statement locks several rows. */
function inOrder<Shard extends { readonly shard: number }>(list: readonly Shard[]): Shard[] {
  return [...list].sort((left, right) => left.shard - right.shard);
}
