import type { GroupKey } from "../../../queue/store.ts";
import type { BeatStatements, HoldingStatements } from "../../sql/queue/statements.ts";
import { inOrder } from "../../sql/queue/values.ts";
import { after, isoText, msBetween, NOW, numberArray, textArray } from "../names.ts";

const MEMBER = "topic_id = $1 AND consumer_group_id = $2";
const OURS = "p.topic_id = $1 AND p.consumer_group_id = $2";

export function holding({ topic, group }: GroupKey): HoldingStatements {
  const key = [topic, group];
  return {
    ...takeStatement(key),

    readLeases: () => ({
      name: "readPartitions",
      text: `SELECT partition_no AS shard, owner, epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM message_consumption WHERE ${MEMBER} ORDER BY partition_no`,
      params: key,
    }),

    /** Another member may take the partition right after it, which raises the epoch. */
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
     * Takes the partitions, in order, exactly as observed or not at all. Waits for a running settle
     * of the old owner, which holds this row; a later one finds the new epoch and changes nothing.
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

const KEYS = "unnest($1::text[], $2::text[]) AS wanted (topic_id, consumer_group_id)";
/** For LATERAL with OFFSET 0: one lookup per row, even while the tables are small. */
const OF_WANTED = "i.topic_id = wanted.topic_id AND i.consumer_group_id = wanted.consumer_group_id";
const OF_KEY = "p.topic_id = wanted.topic_id AND p.consumer_group_id = wanted.consumer_group_id";

export const beats: BeatStatements = {
  /** Locks the rows of these members in one order until it ends; no other statement writes them. */
  reportMembers(members) {
    const list = inOrder(members);
    return {
      name: "reportMembers",
      text: `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at)
SELECT topic_id, consumer_group_id, owner, label, ${NOW}
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS members (topic_id, consumer_group_id, owner, label)
ON CONFLICT (topic_id, consumer_group_id, owner) DO UPDATE SET label = EXCLUDED.label, seen_at = EXCLUDED.seen_at`,
      params: [
        ...keyArrays(list.map(({ key }) => key)),
        textArray(list.map(({ owner }) => owner)),
        textArray(list.map(({ label }) => label)),
      ],
    };
  },

  /**
   * Locks the rows it writes until it ends; a takeover changes the epoch. With "skip", a locked row
   * does not delay the other groups. If we die right after it, the leases last a little longer.
   */
  renewPartitions(members, locked) {
    const list = inOrder(members).flatMap(({ key, owner, leaseMs, held }) =>
      held.map(({ shard, epoch }) => ({ key, owner, leaseMs, shard, epoch })),
    );
    return {
      name: "renewPartitions",
      text: `WITH held AS MATERIALIZED (
  SELECT p.topic_id, p.consumer_group_id, p.partition_no, wanted.lease_ms
  FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::text[], $6::bigint[])
    AS wanted (topic_id, consumer_group_id, partition_no, epoch, owner, lease_ms)
  JOIN message_consumption p ON ${OF_KEY} AND p.partition_no = wanted.partition_no
  WHERE p.owner = wanted.owner AND p.epoch = wanted.epoch
  FOR UPDATE OF p${locked === "skip" ? " SKIP LOCKED" : ""})
UPDATE message_consumption p
SET lease_until = ${after("held.lease_ms")}, lease_ms = held.lease_ms
FROM held
WHERE p.topic_id = held.topic_id AND p.consumer_group_id = held.consumer_group_id AND p.partition_no = held.partition_no`,
      params: [
        ...keyArrays(list.map(({ key }) => key)),
        numberArray(list.map(({ shard }) => shard)),
        numberArray(list.map(({ epoch }) => epoch)),
        textArray(list.map(({ owner }) => owner)),
        numberArray(list.map(({ leaseMs }) => leaseMs)),
      ],
    };
  },

  readPartitions: (keys) => ({
    name: "readPartitions",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.partition_no AS shard, p.owner AS owner, p.epoch AS epoch,
  ${isoText("p.lease_until")} AS lease_until, p.lease_ms AS lease_ms
FROM ${KEYS} CROSS JOIN LATERAL (SELECT * FROM message_consumption i WHERE ${OF_WANTED} OFFSET 0) p`,
    params: keyArrays(keys),
  }),

  readMembers: (keys) => ({
    name: "readMembers",
    text: `SELECT p.topic_id AS topic, p.consumer_group_id AS groupid, p.owner AS owner, p.label AS label, ${msBetween("p.seen_at", NOW)} AS silent_ms
FROM ${KEYS} CROSS JOIN LATERAL (SELECT * FROM message_consumer i WHERE ${OF_WANTED} OFFSET 0) p`,
    params: keyArrays(keys),
  }),
};

function keyArrays(keys: readonly GroupKey[]): readonly string[] {
  return [textArray(keys.map(({ topic }) => topic)), textArray(keys.map(({ group }) => group))];
}
