/** Small batches keep the file's only write lock short. */
import type { TimedDecision } from "../../relay/store.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { removalCalls } from "../sql/calls.ts";
import { literal } from "../sql/sql-names.ts";
import { type HousekeepingStatements, ID_BELOW_ONE } from "../sql/statements.ts";
import { timedChanges, timedTexts } from "../sql/timed-changes.ts";
import { behindStatements } from "./behind.ts";
import {
  after,
  before,
  fenceCondition,
  fenceParams,
  jsonIds,
  msSince,
  type Names,
  NOW,
  tokenRows,
  tokenSource,
} from "./names.ts";

export function housekeepingStatements(names: Names): HousekeepingStatements {
  return {
    ...behindStatements(names),
    ...fencedStatements(names),
    ...removalStatements(names),
    ...sweepStatements(names),
    ...timerStatements(names),
    ...clockStatements(names),
    // Readers use their own snapshot in the write-ahead log, which the scans do not walk.
    oldTransactions: undefined,
  };
}

type Sweeps = "listSending" | "recoverRows" | "listStrays" | "failUnknownStates" | "failUnreached" | "gauges";

function sweepStatements(names: Names): Pick<HousekeepingStatements, Sweeps> {
  const { id, state, topic, failReason, nextRetryAt, gmtCreate } = names.column;
  const list = `SELECT CAST(m.${id} AS TEXT) AS id, 0 AS shard, ${names.tokenColumns},
  m.${topic} AS topic
FROM ${names.table} AS m
WHERE m.${state} = ${names.state("sending")}${names.ofTopics}
ORDER BY m.${id}
LIMIT ?`;
  // Fenced, and only for the same claim seen twice (rule: watched-sending): later changes move the
  // token.
  const recover = `UPDATE ${names.table} AS m
SET ${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}${names.changed}
FROM ${tokenSource()} AS stray
WHERE m.${id} = stray.id AND ${names.isIn("sending")} AND ${names.tokenMatches("stray")}
  AND ${fenceCondition(names)}`;
  // If we die right after it, the rows are failed with a visible reason.
  const failStrays = (reason: string, condition: string): string => `UPDATE ${names.table} AS m
SET ${state} = ${names.state("failed")}, ${nextRetryAt} = NULL,
  ${failReason} = substr(${reason}, 1, ${names.layout.failReasonLength})${names.changed}
WHERE m.${id} IN (SELECT value FROM json_each(?)) AND (${condition})`;
  const failUnknown = failStrays(
    `'UNKNOWN_STATE: the state was ' || COALESCE(m.${state}, 'NULL') || ', which is none of ${names.knownStates.replaceAll("'", "")}; somebody changed the row by hand'`,
    `${unknownState(names)} OR ${state} IS NULL`,
  );
  const unreached = `${id} < 1 AND +${state} = ${names.state("pending")}`;
  const strays = [unknownState(names), `${state} IS NULL`, unreached]
    .map(
      (where) =>
        `SELECT * FROM (SELECT CAST(m.${id} AS TEXT) AS id FROM ${names.table} AS m WHERE ${where}${names.ofTopics} LIMIT ?)`,
    )
    .join("\nUNION ALL\n");
  const failUnreached = failStrays(literal(ID_BELOW_ONE), unreached);
  const bounded = (one: "pending" | "sending" | "failed" | "suspended", which = ""): string =>
    `SELECT * FROM (SELECT m.${topic} AS topic, m.${state} AS state, m.${gmtCreate} AS since FROM ${names.table} AS m WHERE m.${state} = ${names.state(one)}${which} LIMIT ?)`;
  // Newest failed rows first: behind 10,000 old ones, those of another topic would be missed.
  const failed = [
    bounded("failed", ` AND m.${nextRetryAt} IS NULL ORDER BY m.${id} DESC`),
    bounded("failed", ` AND m.${nextRetryAt} IS NOT NULL ORDER BY m.${nextRetryAt} DESC`),
  ];
  const gauges = `SELECT topic, state, count(*) AS count, ${msSince("min(since)")} AS oldest_age_ms
FROM (
  ${[bounded("pending"), bounded("sending"), bounded("suspended"), ...failed].join("\n  UNION ALL\n  ")}) AS unfinished
GROUP BY topic, state`;
  return {
    listSending: ({ limit }) => ({ name: "listSending", text: list, params: [limit] }),
    recoverRows: ({ fence, rows }) => ({
      name: "recoverRows",
      text: recover,
      params: [tokenRows(rows), ...fenceParams(fence)],
    }),
    listStrays: (limit) => ({ name: "listStrays", text: strays, params: [limit, limit, limit] }),
    failUnknownStates: (ids) => ({ name: "failUnknownStates", text: failUnknown, params: [jsonIds(ids)] }),
    failUnreached: (ids) => ({ name: "failUnreached", text: failUnreached, params: [jsonIds(ids)] }),
    gauges: (limit, failedLimit = limit) => ({
      name: "gauges",
      text: gauges,
      params: [limit, limit, limit, failedLimit, failedLimit],
    }),
  };
}

/** Condition for a row in no known state, worded like its partial index. */
export function unknownState(names: Names): string {
  return `${names.column.state} NOT IN (${names.knownStates})`;
}

type Timers = "listTimed" | "applyTimed" | "resetBackoff";

function timerStatements(names: Names): Pick<HousekeepingStatements, Timers> {
  const { id, state, topic, messageType, messageKey, retryCount, nextRetryAt, gmtCreate, deliverAt, failReason } =
    names.column;
  // Three walks along the index; only the results are sorted together.
  const timed = (one: "sent" | "failed" | "suspended"): string => `SELECT * FROM (
  SELECT CAST(m.${id} AS TEXT) AS id, 0 AS shard, ${names.tokenColumns},
    m.${state} AS state, m.${messageType} AS message_type, m.${messageKey} AS message_key, m.${topic} AS topic, ${names.retryCount} AS retry_count,
    ${msSince(`m.${gmtCreate}`)} AS age_ms, m.${failReason} AS fail_reason, m.${nextRetryAt} AS due_at
  FROM ${names.table} AS m
  WHERE m.${state} = ${names.state(one)} AND m.${nextRetryAt} <= ${NOW}${names.ofTopics}
  ORDER BY m.${nextRetryAt}
  LIMIT ?)`;
  const list = `SELECT id, shard, delivery_count, lock_version, identity_hash, state, message_type, message_key, topic, retry_count, age_ms, fail_reason
FROM (${timed("sent")}
UNION ALL ${timed("failed")}
UNION ALL ${timed("suspended")}) AS timed
ORDER BY due_at
LIMIT ?`;
  const apply = applyTexts(names);
  /*
   * The i-th row by id comes due i * step from now. Only rows that wait longer than the whole ramp,
   * so a second call continues where the first ended; never delayed rows (rule: delay-is-not-retry)
   * or rows set behind. For failed rows the slow retry comes due.
   */
  const notDelayed =
    deliverAt === undefined
      ? `COALESCE(m.${retryCount}, 0) > 0`
      : `(m.${deliverAt} IS NULL OR m.${deliverAt} <= ${NOW})`;
  const reset = `UPDATE ${names.table} AS m
SET ${nextRetryAt} = ${after("(ramp.place * ?)")}${names.changed}
FROM (SELECT picked.id AS id, row_number() OVER (ORDER BY picked.id) - 1 + ? AS place FROM (
    SELECT m.${id} AS id FROM ${names.table} AS m
    WHERE m.${state} IN (${names.state("pending", "failed")}) AND m.${nextRetryAt} > ${after("(? * ?)")} AND m.${nextRetryAt} < '${BEHIND_BASE}' AND m.${topic} = ? AND ${notDelayed}
    ORDER BY m.${id} LIMIT ? OFFSET ?) AS picked) AS ramp
WHERE m.${id} = ramp.id`;
  return {
    listTimed: (limit) => ({ name: "listTimed", text: list, params: [limit, limit, limit, limit] }),
    applyTimed: ({ transition, decisions }) => ({
      name: "applyTimed",
      text: apply[transition],
      params: [tokenRows(decisions, (row) => [row.nextRetryInMs, row.failReason])],
    }),
    resetBackoff: ({ topic: which, limit, stepMs, rows, skip, done }) => ({
      name: "resetBackoff",
      text: reset,
      params: [stepMs, done, limit, stepMs, which, rows, skip],
    }),
  };
}

/**
 * For a clock that was set back. If we die right after it, those rows are due, and the rest wait
 * for their time.
 */
function clockStatements(names: Names): Pick<HousekeepingStatements, "shortenWaits" | "readClock"> {
  const { id, state, retryCount, nextRetryAt, deliverAt } = names.column;
  const ramp = after("(ramp.place * ?)");
  const own =
    deliverAt === undefined
      ? ""
      : `\n      AND (m.${deliverAt} IS NULL OR m.${nextRetryAt} > strftime('%Y-%m-%d %H:%M:%f', m.${deliverAt}, (? / 1000.0) || ' seconds'))`;
  const forward = `UPDATE ${names.table} AS m
SET ${nextRetryAt} = ${deliverAt === undefined ? ramp : `max(${ramp}, COALESCE(m.${deliverAt}, ''))`}${names.changed}
FROM (SELECT picked.id AS id, row_number() OVER (ORDER BY picked.id) - 1 + ? AS place FROM (
    SELECT m.${id} AS id FROM ${names.table} AS m
    WHERE m.${state} = ${names.state("pending")} AND m.${retryCount} > 0
      AND m.${nextRetryAt} > ${after("?")} AND m.${nextRetryAt} < '${BEHIND_BASE}'${own}${names.ofTopics}
    ORDER BY m.${id} LIMIT ? OFFSET ?) AS picked) AS ramp
WHERE m.${id} = ramp.id`;
  return {
    readClock: () => ({
      name: "readClock",
      text: "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now_ms",
      params: [],
    }),
    shortenWaits: ({ beyondMs, stepMs, rows, skip, done }) => ({
      name: "shortenWaits",
      text: forward,
      params: [stepMs, done, beyondMs, ...(deliverAt === undefined ? [] : [beyondMs]), rows, skip],
    }),
  };
}

/** A person or consumer who changed a row since it was listed has moved its token, and wins. */
function applyTexts(names: Names): Readonly<Record<TimedDecision["transition"], string>> {
  const changes = timedChanges(names, { after, never: "'9999-12-31 00:00:00.000'" });
  return timedTexts(
    changes,
    (change) => `UPDATE ${names.table} AS m
SET ${change.set}${names.changed}
FROM ${tokenSource("next_ms", "fail_reason")} AS decided
WHERE m.${names.column.id} = decided.id AND ${names.isIn(...change.from)} AND ${names.tokenMatches("decided")}`,
  );
}

function fencedStatements(names: Names): Pick<HousekeepingStatements, "failPending" | "suspendPending" | "park"> {
  const { id, state, failReason, nextRetryAt } = names.column;
  const where = `WHERE m.${id} = scanned.id AND ${names.isIn("pending")} AND ${names.tokenMatches("scanned")}`;
  const fence = `  AND ${fenceCondition(names)}`;
  // Only the shard's owner may claim these rows; a person's change since the scan shows in the
  // token.
  const fail = `UPDATE ${names.table} AS m
SET ${state} = ${names.state("failed")}, ${nextRetryAt} = ${after("?")}, ${failReason} = scanned.fail_reason${names.changed}
FROM ${tokenSource("fail_reason")} AS scanned
${where}
${fence}`;
  const suspend = `UPDATE ${names.table} AS m
SET ${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("?")}, ${failReason} = ?${names.changed}
FROM ${tokenSource()} AS scanned
${where}${names.notDelayed}
${fence}`;
  // next_ms is a column instead of a parameter, because pendingIn needs it twice.
  const park = `UPDATE ${names.table} AS m
SET ${nextRetryAt} = ${names.pendingIn("scanned.next_ms")}${names.changed}
FROM ${tokenSource("next_ms")} AS scanned
${where}
${fence}`;
  return {
    failPending: ({ fence: by, rows, nextRetryInMs }) => ({
      name: "failPending",
      text: fail,
      params: [nextRetryInMs, tokenRows(rows, (row) => [row.failReason]), ...fenceParams(by)],
    }),
    suspendPending: ({ fence: by, rows, failReason: reason, endsInMs }) => ({
      name: "suspendPending",
      text: suspend,
      params: [endsInMs, reason, tokenRows(rows), ...fenceParams(by)],
    }),
    park: ({ fence: by, rows, parkMs }) => ({
      name: "park",
      text: park,
      params: [tokenRows(rows, () => [parkMs]), ...fenceParams(by)],
    }),
  };
}

/**
 * No row locks: the surrounding transaction has the file's only write lock (rule: checked-move).
 */
function removalStatements(names: Names): ReturnType<typeof removalCalls> {
  const { id, state, nextRetryAt, gmtModified, consumedAt, sentAt } = names.column;
  const columns = Object.values(names.column).join(", ");
  const given = "IN (SELECT value FROM json_each(?))";
  const next = (which: "sent" | "consumed"): string =>
    `FROM ${names.table} AS m WHERE m.${state} = ${names.state(which)} AND m.${nextRetryAt} IS NULL AND m.${id} > ? ORDER BY m.${id}`;
  const finished = (
    which: "sent" | "consumed",
    since = gmtModified,
  ): string => `SELECT CAST(next.id AS TEXT) AS id FROM (
  SELECT m.${id} AS id, COALESCE(m.${since}, m.${gmtModified}) AS since, (true${names.ofTopics}) AS own ${next(which)} LIMIT ?) AS next
WHERE next.own AND next.since <= ${before("?")}`;
  // Reads only index entries. No lock.
  const pass = (which: "sent" | "consumed"): string =>
    `SELECT CAST(m.${id} AS TEXT) AS id ${next(which)} LIMIT 1 OFFSET ?`;
  const texts = {
    lockFinished: { sent: finished("sent", sentAt), consumed: finished("consumed", consumedAt) },
    passFinished: { sent: pass("sent"), consumed: pass("consumed") },
    copyToArchive: `INSERT INTO ${names.archive} (${columns}, archived_at) SELECT ${columns}, ${NOW} FROM ${names.table} WHERE ${id} ${given}`,
    deleteRows: `DELETE FROM ${names.table} WHERE ${id} ${given}`,
    purgeArchive: `DELETE FROM ${names.archive} WHERE rowid IN (
  SELECT rowid FROM ${names.archive} WHERE archived_at <= ${before("?")} ORDER BY archived_at LIMIT ?)`,
  };
  return removalCalls(texts, jsonIds);
}
