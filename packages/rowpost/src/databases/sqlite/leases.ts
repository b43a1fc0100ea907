/**
 * Leases, the registry of relay instances, and suspension rules. One shard (rule: sqlite-handle).
 */
import { registryCalls } from "../sql/calls.ts";
import type { LeaseStatements } from "../sql/statements.ts";
import { after, before, isoText, msSince, type Names, NOW } from "./names.ts";

type ShardStatements = Pick<LeaseStatements, "ensureShards" | "renew" | "readLeases" | "release" | "clearListed">;

function shardStatements(names: Names): ShardStatements {
  const { shardTable, leaseKey } = names;
  const mine = `table_name = ${leaseKey} AND shard = 0 AND owner = ? AND epoch = ?`;
  const ensure = `INSERT INTO ${shardTable} (table_name, shard) VALUES (${leaseKey}, 0) ON CONFLICT (table_name, shard) DO NOTHING`;
  const renew = `UPDATE ${shardTable} SET lease_until = ${after("?")}, lease_ms = ? WHERE ${mine}`;
  const read = `SELECT shard, owner, CAST(epoch AS TEXT) AS epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM ${shardTable} WHERE table_name = ${leaseKey} ORDER BY shard`;
  // Keeps the epoch, which the next owner raises; without an owner our fences do not match.
  const release = `UPDATE ${shardTable} SET owner = NULL, lease_until = ${NOW}, in_flight = '[]' WHERE ${mine}`;
  const clear = `UPDATE ${shardTable} SET in_flight = '[]' WHERE table_name = ${leaseKey} AND shard IN (SELECT value FROM json_each(?))`;
  return {
    ensureShards: () => ({ name: "ensureShards", text: ensure, params: [] }),
    renew: ({ owner, leaseMs, held }) => ({
      name: "renew",
      text: renew,
      params: [leaseMs, leaseMs, owner, epochOf(held)],
    }),
    readLeases: () => ({ name: "readLeases", text: read, params: [] }),
    release: ({ owner, shards }) => ({ name: "release", text: release, params: [owner, epochOf(shards)] }),
    clearListed: (shards) => ({ name: "clearListed", text: clear, params: [JSON.stringify(shards)] }),
  };
}

/** Epoch of the one shard in this list, or -1, which no lease row has. */
function epochOf(held: readonly { readonly shard: number; readonly epoch: string }[]): string {
  return held.find(({ shard }) => shard === 0)?.epoch ?? "-1";
}

type TakeoverStatements = Pick<LeaseStatements, "take" | "recoverShards" | "recoverListed">;

function takeoverStatements(names: Names): TakeoverStatements {
  const { shardTable, leaseKey, table } = names;
  const { id, state, nextRetryAt, deliveryCount, retryCount } = names.column;
  // Takes the shard exactly as observed or not at all. The transaction has the file's only write
  // lock, so takers run one after the other (rule: hand-over).
  const take = `UPDATE ${shardTable}
SET owner = ?, epoch = epoch + 1, lease_until = ${after("?")}, lease_ms = ?
WHERE table_name = ${leaseKey} AND shard = 0 AND epoch = ? AND owner IS ? AND ${isoText("lease_until")} = ?`;
  const inShards = "EXISTS (SELECT 1 FROM json_each(?) WHERE value = 0)";
  const recover = `UPDATE ${table} AS m
SET ${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}${names.changed}
WHERE m.${state} = ${names.state("sending")} AND ${inShards}${names.ofTopics}`;
  const counted =
    deliveryCount === undefined
      ? `${retryCount} = m.${retryCount}`
      : `${deliveryCount} = COALESCE(m.${deliveryCount}, 0) + 1`;
  const recoverListed = `UPDATE ${table} AS m
SET ${counted}${names.changed}
WHERE ${names.isIn("pending")} AND ${inShards}
  AND m.${id} IN (SELECT listed.value FROM ${shardTable} AS lease, json_each(lease.in_flight) AS listed WHERE lease.table_name = ${leaseKey} AND lease.shard = 0)`;
  return {
    take: ({ owner, leaseMs, observed }) => {
      const lease = observed.find(({ shard }) => shard === 0);
      return {
        name: "take",
        text: take,
        params: [owner, leaseMs, leaseMs, lease?.epoch ?? -1, lease?.owner ?? null, lease?.leaseUntil ?? ""],
      };
    },
    recoverShards: (shards) => ({ name: "recoverShards", text: recover, params: [JSON.stringify(shards)] }),
    recoverListed: (shards) => ({ name: "recoverListed", text: recoverListed, params: [JSON.stringify(shards)] }),
  };
}

function registryStatements(names: Names): ReturnType<typeof registryCalls> {
  const { isLeaseKey, leaseKey, relayTable, shardTable, suspensionTable, tableKey } = names;
  const report = `INSERT INTO ${relayTable} (table_name, owner, label, seen_at) VALUES (${leaseKey}, ?, ?, ${NOW})
ON CONFLICT (table_name, owner) DO UPDATE SET label = excluded.label, seen_at = excluded.seen_at`;
  const writeReport = `UPDATE ${relayTable} SET report = ?, reported_at = ${NOW} WHERE table_name = ${leaseKey} AND owner = ?`;
  const readReports = `SELECT owner, label, ${msSince("seen_at")} AS silent_ms, report, ${msSince("reported_at")} AS report_age_ms
FROM ${relayTable} WHERE ${isLeaseKey} ORDER BY table_name, owner`;
  const everyLease = `SELECT table_name, shard, owner, CAST(epoch AS TEXT) AS epoch, ${isoText("lease_until")} AS lease_until, lease_ms
FROM ${shardTable} WHERE ${isLeaseKey} ORDER BY table_name, shard`;
  const remove = `DELETE FROM ${relayTable} WHERE table_name = ${leaseKey} AND owner = ?`;
  const forget = `DELETE FROM ${relayTable} WHERE ${isLeaseKey} AND seen_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')`;
  // Both bounds: after the clock was set back, a dead instance would otherwise count as alive until
  // the clock catches up (rule: hand-over).
  const instances = `SELECT owner, label, seen_at BETWEEN ${before("?")} AND ${after("?")} AS alive FROM ${relayTable} WHERE table_name = ${leaseKey} ORDER BY owner`;
  const suspensions = `SELECT scope, value, reason, author, -${msSince("ends_at")} AS ends_in_ms
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
    2,
  );
}

export function leaseStatements(names: Names): LeaseStatements {
  return { ...registryStatements(names), ...shardStatements(names), ...takeoverStatements(names) };
}
