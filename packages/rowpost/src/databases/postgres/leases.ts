import type { ShardLease } from "../../relay/store.ts";
import { registryCalls } from "../sql/calls.ts";
import type { LeaseStatements } from "../sql/statements.ts";
import { after, isoText, msBetween, type Names, NOW, numberArray, SHARDS, textArray } from "./names.ts";

export function leaseStatements(names: Names): LeaseStatements {
  return { ...shardStatements(names), ...takeoverStatements(names), ...registryStatements(names) };
}

type ShardStatements = Pick<LeaseStatements, "ensureShards" | "renew" | "readLeases" | "release" | "clearListed">;

function shardStatements(names: Names): ShardStatements {
  const { shardTable, leaseKey } = names;
  // Parallel inserts meet at the primary key, and existing rows stay. If we die right after it,
  // nothing is lost.
  const ensureShards = `INSERT INTO ${shardTable} (table_name, shard)
SELECT ${leaseKey}, shard FROM generate_series(0, ${SHARDS - 1}) AS missing (shard)
ON CONFLICT (table_name, shard) DO NOTHING`;
  // Changes no key column, so it waits for no fence (see fenceClause); an earlier takeover shows in
  // the epoch.
  const renew = `UPDATE ${shardTable} lease
SET lease_until = ${after("$2::bigint")}, lease_ms = $2::bigint
FROM unnest($3::integer[], $4::bigint[]) AS held (shard, epoch)
WHERE lease.table_name = ${leaseKey} AND lease.owner = $1 AND lease.shard = held.shard AND lease.epoch = held.epoch`;
  const read = `SELECT shard, owner, epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM ${shardTable} WHERE table_name = ${leaseKey} ORDER BY shard`;
  // Keeps the epoch, which the next owner raises; without an owner our fences do not match.
  const release = `UPDATE ${shardTable} lease
SET owner = NULL, lease_until = ${NOW}, in_flight = '{}'
FROM unnest($2::integer[], $3::bigint[]) AS held (shard, epoch)
WHERE lease.table_name = ${leaseKey} AND lease.owner = $1 AND lease.shard = held.shard AND lease.epoch = held.epoch`;
  /** Part of a takeover, whose transaction has locked these lease rows. */
  const clearListed = `UPDATE ${shardTable} SET in_flight = '{}' WHERE table_name = ${leaseKey} AND shard = ANY ($1::integer[])`;
  return {
    ensureShards: () => ({ name: "ensureShards", text: ensureShards, params: [] }),
    renew: ({ owner, leaseMs, held }) => ({
      name: "renew",
      text: renew,
      params: [
        owner,
        leaseMs,
        numberArray(held.map((lease) => lease.shard)),
        numberArray(held.map((lease) => lease.epoch)),
      ],
    }),
    readLeases: () => ({ name: "readLeases", text: read, params: [] }),
    release: ({ owner, shards }) => ({
      name: "release",
      text: release,
      params: [owner, numberArray(shards.map((lease) => lease.shard)), numberArray(shards.map((lease) => lease.epoch))],
    }),
    clearListed: (shards) => ({ name: "clearListed", text: clearListed, params: [numberArray(shards)] }),
  };
}

type TakeoverStatements = Pick<LeaseStatements, "take" | "recoverShards" | "recoverListed">;

function takeoverStatements(names: Names): TakeoverStatements {
  const { shardTable, leaseKey, table, column } = names;
  const { id, state, nextRetryAt, deliveryCount, retryCount } = names.column;
  /*
   * Locks the lease rows in shard order, so takers cannot deadlock, and waits for running fenced
   * statements (see fenceClause). The second taker finds another epoch and takes nothing. Compares
   * lease_until as observed, to prove that it was not renewed (rule: hand-over).
   */
  const take = `WITH free AS MATERIALIZED (
  SELECT lease.shard
  FROM ${shardTable} lease
  JOIN unnest($3::integer[], $4::bigint[], $5::text[], $6::text[]) AS observed (shard, epoch, owner, lease_until)
    ON observed.shard = lease.shard AND observed.epoch = lease.epoch
  WHERE lease.table_name = ${leaseKey} AND lease.owner IS NOT DISTINCT FROM observed.owner
    AND ${isoText("lease.lease_until")} = observed.lease_until
  ORDER BY lease.shard
  FOR UPDATE OF lease)
UPDATE ${shardTable} lease
SET owner = $1, epoch = lease.epoch + 1, lease_until = ${after("$2::bigint")}, lease_ms = $2::bigint
FROM free
WHERE lease.table_name = ${leaseKey} AND lease.shard = free.shard`;
  /*
   * A separate statement, because it needs a snapshot after the takeover's lock: in one statement
   * it saw 0 of 3 rows (rule: takeover-fence). Locks the free `sending` rows; waiting for a user's
   * lock would fail the takeover at every heartbeat, so the sweep finds such a row (rule:
   * watched-sending). If we die before the commit, the shards stay free.
   */
  const recoverShards = `UPDATE ${table} m
SET ${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}${names.changed}
WHERE m.${id} = ANY (ARRAY(SELECT m.${id} FROM ${table} m
  WHERE m.${state} = ${names.state("sending")} AND ${names.shard} = ANY ($1::integer[])${names.ofTopics}
  FOR UPDATE SKIP LOCKED))`;
  const counted =
    deliveryCount === undefined
      ? `${retryCount} = m.${retryCount}`
      : `${deliveryCount} = COALESCE(m.${deliveryCount}, 0) + 1`;
  /*
   * Locks the free listed rows; the lease rows are ours already. Skips a row that a user holds,
   * without counting this delivery, because our first batch replaces the list (rule:
   * listed-in-flight). That is safe: a late settle of the old owner fails at the epoch, and the
   * crash limit (rule: crash-counting) is reached one crash later.
   */
  const recoverListed = `UPDATE ${table} m
SET ${counted}${names.changed}
WHERE m.${id} = ANY (ARRAY(SELECT m.${id}
  FROM (SELECT unnest(lease.in_flight) AS id FROM ${shardTable} lease WHERE lease.table_name = ${leaseKey} AND lease.shard = ANY ($1::integer[])) AS listed
  JOIN ${table} m ON m.${id} = listed.id
  WHERE m.${column.state} = ${names.state("pending")}
  FOR UPDATE OF m SKIP LOCKED))`;
  return {
    take: ({ owner, leaseMs, observed }) => ({
      name: "take",
      text: take,
      params: [owner, leaseMs, ...observedParams(observed)],
    }),
    recoverShards: (shards) => ({ name: "recoverShards", text: recoverShards, params: [numberArray(shards)] }),
    recoverListed: (shards) => ({ name: "recoverListed", text: recoverListed, params: [numberArray(shards)] }),
  };
}

function observedParams(observed: readonly ShardLease[]): readonly string[] {
  return [
    numberArray(observed.map((lease) => lease.shard)),
    numberArray(observed.map((lease) => lease.epoch)),
    textArray(observed.map((lease) => lease.owner ?? null)),
    textArray(observed.map((lease) => lease.leaseUntil)),
  ];
}

/**
 * Running relays and suspension rules. Each writing statement locks the registry rows it writes
 * (its own or dead instances') until it ends; no other statement writes them.
 */
function registryStatements(names: Names): ReturnType<typeof registryCalls> {
  const { isLeaseKey, leaseKey, relayTable, shardTable, suspensionTable, tableKey } = names;
  const report = `INSERT INTO ${relayTable} (table_name, owner, label, seen_at) VALUES (${leaseKey}, $1, $2, ${NOW})
ON CONFLICT (table_name, owner) DO UPDATE SET label = EXCLUDED.label, seen_at = EXCLUDED.seen_at`;
  const writeReport = `UPDATE ${relayTable} SET report = $1, reported_at = ${NOW} WHERE table_name = ${leaseKey} AND owner = $2`;
  const readReports = `SELECT owner, label, ${msBetween("seen_at", NOW)} AS silent_ms, report, ${msBetween("reported_at", NOW)} AS report_age_ms
FROM ${relayTable} WHERE ${isLeaseKey} ORDER BY table_name, owner`;
  const everyLease = `SELECT table_name, shard, owner, epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM ${shardTable} WHERE ${isLeaseKey} ORDER BY table_name, shard`;
  const remove = `DELETE FROM ${relayTable} WHERE table_name = ${leaseKey} AND owner = $1`;
  const forget = `DELETE FROM ${relayTable} WHERE ${isLeaseKey} AND seen_at < ${NOW} - interval '1 day'`;
  // Both bounds: after the clock was set back, a dead instance would otherwise count as alive until
  // the clock catches up (rule: hand-over).
  const timeout = "$1::bigint * interval '1 millisecond'";
  const instances = `SELECT owner, label, CASE WHEN seen_at BETWEEN ${NOW} - ${timeout} AND ${NOW} + ${timeout} THEN 1 ELSE 0 END AS alive
FROM ${relayTable} WHERE table_name = ${leaseKey} ORDER BY owner`;
  const suspensions = `SELECT scope, value, reason, author, ${msBetween(NOW, "ends_at")} AS ends_in_ms
FROM ${suspensionTable} WHERE table_name = ${tableKey} AND (ends_at IS NULL OR ends_at > ${NOW})
ORDER BY scope, value`;
  return registryCalls(
    {
      reportInstance: report,
      writeReport,
      readReports,
      readEveryLease: everyLease,
      removeInstance: remove,
      forgetInstances: forget,
      readInstances: instances,
      readSuspensions: suspensions,
    },
    1,
  );
}
