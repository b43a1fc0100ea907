/** Alerts: their evaluator, sent notices, silences, and late messages. */
import type { AlertLease, NewSilence } from "../../../admin/alerts.ts";
import { after, type Cold, cold, hasTable, insertNew, iso, notById, now, orNothing } from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";

/** Late rows counted at most: 40 ms, in memory, every 15 s. */
const LATE_ROWS = 10_000;
const KEPT_SILENCE_MS = 30 * 86_400_000;

/**
 * Inserts the table's row unless it exists; the later of two evaluators finds it. If we die right
 * after it, the row has no owner.
 */
export function addAlerts({ companions, key }: MessageTable): Cold {
  return cold("addAlerts")`${insertNew} ${companions.alert} (table_name) VALUES (${key})${orNothing("table_name")}`;
}

/**
 * Locks the row and affects it if the lease is free or this owner's; the later of two evaluators
 * finds it taken. If we die right after it, another takes over after the lease. An end too far
 * ahead comes from a clock that was set back.
 */
export function holdAlerts({ companions, key }: MessageTable, { leaseMs, owner }: AlertLease): Cold {
  return cold("holdAlerts")`UPDATE ${companions.alert} SET owner = ${owner}, lease_until = ${after(leaseMs)}
WHERE table_name = ${key} AND (owner = ${owner} OR owner IS NULL OR lease_until < ${now} OR lease_until > ${after(2 * leaseMs)})`;
}

/**
 * Locks the row and changes it only for the lease's owner, so an evaluator frozen past its lease
 * writes nothing. If we die right after it, the next owner finds the pending notices.
 */
export function saveAlerts(
  { companions, key }: MessageTable,
  { leaseMs, owner, state }: AlertLease & { readonly state: string },
): Cold {
  return cold(
    "saveAlerts",
  )`UPDATE ${companions.alert} SET state = ${state}, saved_at = ${now}, lease_until = ${after(leaseMs)}
WHERE table_name = ${key} AND owner = ${owner}`;
}

/** Locks the row; leaves another owner's unchanged. */
export function releaseAlerts({ companions, key }: MessageTable, owner: string): Cold {
  return cold(
    "releaseAlerts",
  )`UPDATE ${companions.alert} SET owner = NULL WHERE table_name = ${key} AND owner = ${owner}`;
}

/** Aliases: state (NULL: none yet), clock, saved_at (NULL: never). */
export function readAlerts({ companions, key, words }: MessageTable): Cold {
  return cold("readAlerts")`SELECT a.state AS state, ${iso(words.now)} AS clock, ${iso("a.saved_at")} AS saved_at
FROM ${companions.alert} AS a WHERE a.table_name = ${key}`;
}

/**
 * Aliases: name, count, late_ms. Sent rows whose next_retry_at passed this long ago, by type. Reads
 * a bounded range of the index on state and time. No lock.
 */
export function lateConfirmations({ clock, column, messages, state }: MessageTable, lateMs: number): Cold {
  return cold(
    "lateConfirmations",
  )`SELECT late.name AS name, COUNT(*) AS count, ${clock.msSince("MIN(late.since)")} AS late_ms
FROM (SELECT ${column("messageType")} AS name, ${column("nextRetryAt")} AS since FROM ${messages} AS m${notById}
  WHERE ${column("state")} = ${state("sent")} AND ${column("nextRetryAt")} < ${clock.after(-lateMs)}
  ORDER BY ${column("nextRetryAt")} LIMIT ${LATE_ROWS}) AS late
GROUP BY late.name`;
}

/** Aliases as in lateConfirmations. Rows in `sending` last changed this long ago, by topic. */
export function lateSending({ clock, column, messages, state }: MessageTable, lateMs: number): Cold {
  return cold("lateSending")`SELECT late.name AS name, COUNT(*) AS count, ${clock.msSince("MIN(late.since)")} AS late_ms
FROM (SELECT ${column("topic")} AS name, ${column("gmtModified")} AS since FROM ${messages} AS m${notById}
  WHERE ${column("state")} = ${state("sending")} LIMIT ${LATE_ROWS}) AS late
WHERE late.since < ${clock.after(-lateMs)} GROUP BY late.name`;
}

/** Alias: found (0: the queue's own tables are missing). Reads the catalog. No lock. */
export function findQueue(): Cold {
  return cold("findQueue")`SELECT ${hasTable("message_topic")} AS found`;
}

/** Aliases: id rule_name subject author reason created_at ends_at (ISO texts) active (0, 1). */
export function listSilences({ companions, key }: MessageTable, limit: number): Cold {
  return cold(
    "listSilences",
  )`SELECT s.id AS id, s.rule_name AS rule_name, s.subject AS subject, s.author AS author, s.reason AS reason,
  ${iso("s.created_at")} AS created_at, ${iso("s.ends_at")} AS ends_at, CASE WHEN s.ends_at > ${now} THEN 1 ELSE 0 END AS active
FROM ${companions.silence} AS s WHERE s.table_name = ${key} ORDER BY s.created_at DESC LIMIT ${limit}`;
}

/** Adds a row in the transaction of its audit. */
export function addSilence(
  { companions, key }: MessageTable,
  silence: NewSilence & { readonly id: string; readonly author: string; readonly reason: string },
): Cold {
  const { author, forMs, id, reason, rule = null, subject = null } = silence;
  return cold(
    "addSilence",
  )`INSERT INTO ${companions.silence} (id, table_name, rule_name, subject, author, reason, created_at, ends_at)
VALUES (${id}, ${key}, ${rule}, ${subject}, ${author}, ${reason}, ${now}, ${after(forMs)})`;
}

/** Locks its one row, in the transaction of its audit. Of two parallel calls one ends it. */
export function endSilence({ companions, key }: MessageTable, id: string): Cold {
  return cold(
    "endSilence",
  )`UPDATE ${companions.silence} SET ends_at = ${now} WHERE id = ${id} AND table_name = ${key} AND ends_at > ${now}`;
}

/** Locks a few rows that are no longer read. */
export function forgetSilences({ companions, key }: MessageTable): Cold {
  return cold(
    "forgetSilences",
  )`DELETE FROM ${companions.silence} WHERE table_name = ${key} AND ends_at < ${after(-KEPT_SILENCE_MS)}`;
}
