/** Leases, registry and suspension rules: small tables in UTC, at most 16 rows per statement. */
import type { HeldShard } from "../../relay/store.ts";
import type { LeaseStatements } from "../sql/statements.ts";
import { COMPANION_NOW as NOW, whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

/** Silence after which an instance is forgotten; until then `status` shows it. */
const FORGET_AFTER_HOURS = 24;

/**
 * Without a LIMIT the optimizer merges the sub-query into the UPDATE, which then blocks. The value
 * exceeds any window.
 */
const MOST_RECOVERED = 1_000_000;

type Registry =
  | "reportInstance"
  | "writeReport"
  | "readReports"
  | "readEveryLease"
  | "removeInstance"
  | "forgetInstances"
  | "readInstances"
  | "readSuspensions";
type Takeover = "take" | "recoverShards" | "recoverListed" | "clearListed";

export function leaseStatements(names: MysqlNames): LeaseStatements {
  const { shards, leaseKey } = names;
  const held = "JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j";
  const heldRows = (list: readonly HeldShard[]): string =>
    JSON.stringify(inShardOrder(list).map(({ shard, epoch }) => [shard, epoch]));

  return {
    ...registryStatements(names),
    ...takeoverStatements(names),

    /** Parallel calls meet at the primary key, and ON DUPLICATE KEY keeps the existing row. */
    ensureShards: () => ({
      name: "ensureShards",
      text: `INSERT INTO ${shards} (table_name, shard)
  SELECT ?, every.shard FROM (${Array.from({ length: 16 }, (_, shard) => `SELECT ${shard} AS shard`).join(" UNION ALL ")}) AS every
  WHERE NOT EXISTS (SELECT 1 FROM ${shards} AS s WHERE s.table_name = ? AND s.shard = every.shard)
  ON DUPLICATE KEY UPDATE epoch = epoch`,
      params: [leaseKey, leaseKey],
    }),

    /** Locks the lease rows it writes. A takeover changes the epoch. */
    renew: ({ owner, leaseMs, held: rows }) => ({
      name: "renew",
      text: `UPDATE ${held}
  STRAIGHT_JOIN ${shards} AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.lease_until = ${NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND, s.lease_ms = ${whole(leaseMs)}
  WHERE s.owner = ? AND s.epoch = j.epoch`,
      params: [heldRows(rows), leaseKey, owner],
    }),

    readLeases: () => ({
      name: "readLeases",
      text: `SELECT shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms FROM ${shards} WHERE table_name = ? ORDER BY shard`,
      params: [leaseKey],
    }),

    /** Another relay may take the shard right after it, which raises the epoch. */
    release: ({ owner, shards: rows }) => ({
      name: "release",
      text: `UPDATE ${held}
  STRAIGHT_JOIN ${shards} AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = NULL, s.in_flight = NULL, s.lease_until = ${NOW}
  WHERE s.owner = ? AND s.epoch = j.epoch`,
      params: [heldRows(rows), leaseKey, owner],
    }),
  };
}

/**
 * Running relays and suspension rules. Each writing statement locks the registry rows it writes
 * (its own or dead instances') until it ends; no other statement writes them.
 */
function registryStatements(names: MysqlNames): Pick<LeaseStatements, Registry> {
  const { leaseKey, isLeaseKey, relays, shards, suspensions, tableKey } = names;
  return {
    reportInstance: ({ owner, label }) => ({
      name: "reportInstance",
      text: `INSERT INTO ${relays} (table_name, owner, label, seen_at) VALUES (?, ?, ?, ${NOW})
  ON DUPLICATE KEY UPDATE label = VALUES(label), seen_at = ${NOW}`,
      params: [leaseKey, owner, label],
    }),

    writeReport: ({ owner, report }) => ({
      name: "writeReport",
      text: `UPDATE ${relays} SET report = ?, reported_at = ${NOW} WHERE table_name = ? AND owner = ?`,
      params: [report, leaseKey, owner],
    }),

    readReports: () => ({
      name: "readReports",
      text: `SELECT owner, label, TIMESTAMPDIFF(MICROSECOND, seen_at, ${NOW}) DIV 1000 AS silent_ms, report,
    TIMESTAMPDIFF(MICROSECOND, reported_at, ${NOW}) DIV 1000 AS report_age_ms
  FROM ${relays} WHERE ${isLeaseKey} ORDER BY table_name, owner`,
      params: [],
    }),

    readEveryLease: () => ({
      name: "readEveryLease",
      text: `SELECT table_name, shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms
  FROM ${shards} WHERE ${isLeaseKey} ORDER BY table_name, shard`,
      params: [],
    }),

    removeInstance: (owner) => ({
      name: "removeInstance",
      text: `DELETE FROM ${relays} WHERE table_name = ? AND owner = ?`,
      params: [leaseKey, owner],
    }),

    forgetInstances: () => ({
      name: "forgetInstances",
      text: `DELETE FROM ${relays} WHERE ${isLeaseKey} AND seen_at < ${NOW} - INTERVAL ${FORGET_AFTER_HOURS} HOUR`,
      params: [],
    }),

    // Both bounds: after the clock was set back, a dead instance would otherwise count as alive
    // until the clock catches up (rule: hand-over).
    readInstances: (instanceTimeoutMs) => ({
      name: "readInstances",
      text: `SELECT owner, label, seen_at BETWEEN ${NOW} - INTERVAL ${whole(instanceTimeoutMs)} * 1000 MICROSECOND
    AND ${NOW} + INTERVAL ${whole(instanceTimeoutMs)} * 1000 MICROSECOND AS alive
  FROM ${relays} WHERE table_name = ? ORDER BY owner`,
      params: [leaseKey],
    }),

    readSuspensions: () => ({
      name: "readSuspensions",
      text: `SELECT scope, value, reason, author, TIMESTAMPDIFF(MICROSECOND, ${NOW}, ends_at) DIV 1000 AS ends_in_ms
  FROM ${suspensions} WHERE table_name = ? AND (ends_at IS NULL OR ends_at > ${NOW}) ORDER BY scope, value`,
      params: [tableKey],
    }),
  };
}

function takeoverStatements(names: MysqlNames): Pick<LeaseStatements, Takeover> {
  const { shards, leaseKey, messages, column, state } = names;
  const inShards = (list: readonly number[]): string => (list.length === 0 ? "-1" : list.map(whole).join(", "));
  return {
    /**
     * Takes the shards exactly as observed or not at all: the second of two takers finds another
     * epoch. Waits for the old owner's fenced statements, which share-lock the lease row; later
     * ones find the new epoch.
     */
    take: ({ owner, leaseMs, observed }) => ({
      name: "take",
      text: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
      shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[2]',
      lease_until DATETIME(3) PATH '$[3]')) AS j
  STRAIGHT_JOIN ${shards} AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = ?, s.epoch = s.epoch + 1, s.lease_until = ${NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND, s.lease_ms = ${whole(leaseMs)}
  WHERE s.epoch = j.epoch AND s.owner <=> j.owner AND s.lease_until = j.lease_until`,
      params: [
        JSON.stringify(
          inShardOrder(observed).map(({ shard, epoch, owner: from, leaseUntil }) => [
            shard,
            epoch,
            from ?? null,
            leaseUntil,
          ]),
        ),
        leaseKey,
        owner,
      ],
    }),

    /**
     * Second statement of a takeover, so it sees every claim committed before the lease rows became
     * ours (rule: takeover-fence). Reads a range of the state index with the rows in flight,
     * hundreds at most. SKIP LOCKED, because a plain UPDATE may walk the table and wait for users'
     * uncommitted rows; a locked `sending` row is left to the sweep (rule: watched-sending).
     */
    recoverShards: (list) => ({
      name: "recoverShards",
      text: `UPDATE (SELECT ${column("id")} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${column("state")} = ${state("sending")} AND ${names.shardOf} IN (${inShards(list)})${names.ofTopics}
    LIMIT ${MOST_RECOVERED} FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = ${names.atOnce}${names.bumpVersion}${names.touch}, ${column("state")} = ${state("pending")}`,
      params: [],
    }),

    /**
     * Locks the free listed rows; the lease rows are this transaction's already. Skips a row that a
     * user holds, without counting this delivery, because our first batch replaces the list (rule:
     * listed-in-flight). That is safe: a late settle of the old owner fails at the epoch, and the
     * crash limit (rule: crash-counting) is reached one crash later.
     */
    recoverListed: (list) => ({
      name: "recoverListed",
      text: `UPDATE (SELECT ${column("id")} AS id FROM (SELECT ids.id AS id FROM ${shards} AS s
      STRAIGHT_JOIN JSON_TABLE(COALESCE(s.in_flight, '[]'), '$[*]' COLUMNS (id BIGINT PATH '$')) AS ids
      WHERE s.table_name = ? AND s.shard IN (${inShards(list)}) LIMIT ${MOST_RECOVERED}) AS listed
    STRAIGHT_JOIN ${names.byId} ON ${column("id")} = listed.id
    WHERE ${column("state")} = ${state("pending")}
    LIMIT ${MOST_RECOVERED} FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${names.has("deliveryCount") ? `${column("deliveryCount")} = ${column("deliveryCount")} + 1` : `${column("retryCount")} = ${column("retryCount")}`}${names.bumpVersion}`,
      params: [leaseKey],
    }),

    /** Part of a takeover, whose transaction has locked these lease rows. */
    clearListed: (list) => ({
      name: "clearListed",
      text: `UPDATE ${shards} SET in_flight = NULL WHERE table_name = ? AND shard IN (${inShards(list)})`,
      params: [leaseKey],
    }),
  };
}

/** The order in which every statement locks several lease rows. */
function inShardOrder<Shard extends { readonly shard: number }>(list: readonly Shard[]): Shard[] {
  return [...list].sort((left, right) => left.shard - right.shard);
}
