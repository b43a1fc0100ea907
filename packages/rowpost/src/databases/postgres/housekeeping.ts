/** Housekeeping: sweeps, timers, suspension, archive. Small batches keep locks short. */
import type { TimedDecision } from "../../relay/store.ts";
import { inIdOrder } from "../../runtime/compare-ids.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { removalCalls } from "../sql/calls.ts";
import { literal } from "../sql/sql-names.ts";
import { type HousekeepingStatements, ID_BELOW_ONE } from "../sql/statements.ts";
import { timedChanges, timedTexts } from "../sql/timed-changes.ts";
import { behindStatements } from "./behind.ts";
import {
  after,
  fenceClause,
  fenceParams,
  instant,
  msSince,
  type Names,
  NOW,
  numberArray,
  textArray,
  tokenParams,
  tokenSource,
  unknownState,
} from "./names.ts";
import { oldTransactions } from "./old-transactions.ts";

export function housekeepingStatements(names: Names): HousekeepingStatements {
  return {
    ...sweepStatements(names),
    ...strayStatements(names),
    ...timerStatements(names),
    ...clockStatements(names),
    oldTransactions,
    ...fencedStatements(names),
    ...removalStatements(names),
    ...behindStatements(names),
  };
}

function sweepStatements(names: Names): Pick<HousekeepingStatements, "listSending" | "recoverRows" | "gauges"> {
  const { id, state, topic, nextRetryAt, gmtCreate } = names.column;
  // Reads the small index on `sending` rows. No lock.
  const list = (where: string): string => `SELECT m.${id} AS id, ${names.shard} AS shard, ${names.tokenColumns},
  m.${topic} AS topic
FROM ${names.table} m
WHERE m.${state} = ${names.state("sending")}${where}${names.ofTopics}
ORDER BY m.${id}
LIMIT $1::bigint`;
  const listAll = list("");
  const listSome = list(` AND ${names.shard} = ANY ($2::integer[])`);
  const strays = tokenSource("stray");
  /*
   * Fenced, and only for the same claim seen twice (rule: watched-sending): later changes move the
   * token. Locks the lease rows, then the free message rows; others are left for the next sweep.
   */
  const recover = `${fenceClause(names)}, free AS MATERIALIZED (
  SELECT m.${id} FROM ${strays} JOIN fence ON fence.shard = stray.shard JOIN ${names.table} m ON m.${id} = stray.id
  ORDER BY m.${id}
  FOR UPDATE OF m SKIP LOCKED)
UPDATE ${names.table} m
SET ${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}${names.changed}
FROM ${strays}, fence, free
WHERE m.${id} = stray.id AND fence.shard = stray.shard AND m.${id} = free.${id}
  AND m.${state} = ${names.state("sending")} AND ${names.tokenMatches("stray")}`;
  const bounded = (which: string, limit = "$1"): string =>
    `(SELECT m.${topic} AS topic, m.${state} AS state, m.${gmtCreate} AS since FROM ${names.table} m WHERE ${which} LIMIT ${limit}::bigint)`;
  // Newest failed rows first: behind 10,000 old ones, those of another topic would be missed. Only
  // the default table has an index in id order.
  const newest = names.layout.name === "default" ? ` ORDER BY m.${id} DESC` : "";
  const gauges = `SELECT topic, state, count(*) AS count, ${msSince("min(since)")} AS oldest_age_ms
FROM (
  ${[
    bounded(`m.${state} = ${names.state("pending")} AND m.${nextRetryAt} IS NULL`),
    bounded(`m.${state} = ${names.state("pending")} AND m.${nextRetryAt} IS NOT NULL`),
    bounded(`m.${state} = ${names.state("sending")}`),
    bounded(`m.${state} = ${names.state("failed")} AND m.${nextRetryAt} IS NULL${newest}`, "$2"),
    bounded(
      `m.${state} = ${names.state("failed")} AND m.${nextRetryAt} IS NOT NULL ORDER BY m.${nextRetryAt} DESC`,
      "$2",
    ),
    bounded(`m.${state} = ${names.state("suspended")} AND m.${nextRetryAt} IS NULL`),
    bounded(`m.${state} = ${names.state("suspended")} AND m.${nextRetryAt} IS NOT NULL`),
  ].join("\n  UNION ALL\n  ")}) unfinished
GROUP BY topic, state`;
  return {
    listSending: ({ shards, limit }) =>
      shards === undefined
        ? { name: "listSending", text: listAll, params: [limit] }
        : { name: "listSending", text: listSome, params: [limit, numberArray(shards)] },
    recoverRows: ({ fence, rows }) => ({
      name: "recoverRows",
      text: recover,
      params: [...fenceParams(fence, rows), ...tokenParams(inIdOrder(rows))],
    }),
    gauges: (limit, failedLimit = limit) => ({ name: "gauges", text: gauges, params: [limit, failedLimit] }),
  };
}

function strayStatements(
  names: Names,
): Pick<HousekeepingStatements, "listStrays" | "failUnknownStates" | "failUnreached"> {
  const { id, state, failReason, nextRetryAt } = names.column;
  // Skips locked rows until the next round. If we die right after it, the rows are failed with a
  // visible reason.
  const failStrays = (where: string, reason: string): string => `UPDATE ${names.table} m
SET ${state} = ${names.state("failed")}, ${nextRetryAt} = NULL,
  ${failReason} = left(${reason}, ${names.layout.failReasonLength})${names.changed}
WHERE m.${id} = ANY (ARRAY(SELECT ${id} FROM ${names.table} WHERE ${id} = ANY ($1::bigint[]) AND ${where} ORDER BY ${id} FOR UPDATE SKIP LOCKED))`;
  const failUnknown = failStrays(
    unknownState(names),
    `'UNKNOWN_STATE: the state was ' || COALESCE(m.${state}::text, 'NULL') || ', which is none of ${names.knownStates.replaceAll("'", "")}; somebody changed the row by hand'`,
  );
  // Includes the id, because planning casts a constant to the column, which fails if the column is
  // shorter than the layout says.
  const unreached = `${id} < 1 AND ${state} = ${names.state("pending")}`;
  const list = [unknownState(names), unreached]
    .map(
      (where) =>
        `(SELECT m.${id} AS id FROM ${names.table} m WHERE ${where}${names.ofTopics} ORDER BY m.${id} LIMIT $1::bigint)`,
    )
    .join("\nUNION ALL\n");
  const failUnreached = failStrays(unreached, `${literal(ID_BELOW_ONE)} || ' (this one: ' || m.${id} || ')'`);
  return {
    listStrays: (limit) => ({ name: "listStrays", text: list, params: [limit] }),
    failUnknownStates: (ids) => ({ name: "failUnknownStates", text: failUnknown, params: [numberArray(ids)] }),
    failUnreached: (ids) => ({ name: "failUnreached", text: failUnreached, params: [numberArray(ids)] }),
  };
}

function timerStatements(names: Names): Pick<HousekeepingStatements, "listTimed" | "applyTimed" | "resetBackoff"> {
  const { id, state, topic, messageType, messageKey, retryCount, nextRetryAt, gmtCreate, deliverAt, failReason } =
    names.column;
  // Three walks along the index on timed rows; only the results are sorted together.
  const timed = (one: "sent" | "failed" | "suspended"): string => `(SELECT m.${id} AS id, ${names.shard} AS shard,
    ${names.tokenColumns}, m.${state} AS state, m.${messageType} AS message_type,
    m.${messageKey} AS message_key, m.${topic} AS topic, m.${retryCount} AS retry_count, ${msSince(`m.${gmtCreate}`)} AS age_ms,
    m.${failReason} AS fail_reason, m.${nextRetryAt} AS due_at
  FROM ${names.table} m
  WHERE m.${state} = ${names.state(one)} AND m.${nextRetryAt} <= ${NOW}${names.ofTopics}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT $1::bigint)`;
  const list = `SELECT id, shard, delivery_count, lock_version, identity_hash, state, message_type, message_key, topic, retry_count, age_ms, fail_reason
FROM (${timed("sent")} UNION ALL ${timed("failed")} UNION ALL ${timed("suspended")}) timed
ORDER BY due_at, id
LIMIT $1::bigint`;
  const apply = applyTexts(names, false);
  const applyUnlocked = applyTexts(names, true);
  const delayed = deliverAt === undefined ? `COALESCE(m.${retryCount}, 0) = 0` : `m.${deliverAt} > ${NOW}`;
  /*
   * The i-th row by id comes due i * step from now. Only rows that wait longer than the whole ramp,
   * so a second call continues where the first ended; never delayed rows (rule: delay-is-not-retry)
   * or rows set behind. For failed rows the slow retry comes due. Locks the rows; skips one claimed
   * meanwhile.
   */
  const reset = `UPDATE ${names.table} m
SET ${nextRetryAt} = ${after("ramp.place * $3::bigint")}${names.changed}
FROM (SELECT picked.id, row_number() OVER (ORDER BY picked.id) - 1 + $6::bigint AS place FROM (
    SELECT m.${id} AS id FROM ${names.table} m
    WHERE m.${state} IN (${names.state("pending", "failed")}) AND m.${nextRetryAt} > ${after("$2::bigint * $3::bigint")} AND m.${nextRetryAt} < ${instant(literal(BEHIND_BASE))} AND m.${topic} = $1 AND (${delayed}) IS NOT TRUE
    ORDER BY m.${id} LIMIT $4::bigint OFFSET $5::bigint FOR UPDATE SKIP LOCKED) picked) ramp
WHERE m.${id} = ramp.id`;
  return {
    listTimed: (limit) => ({ name: "listTimed", text: list, params: [limit] }),
    applyTimed: ({ transition, decisions, skipLocked }) => {
      const rows = inIdOrder(decisions);
      const [ids, , versions, identityHashs] = tokenParams(rows);
      const next = numberArray(rows.map((row) => row.nextRetryInMs));
      return {
        ...(skipLocked === true
          ? { name: "applyTimedUnlocked", text: applyUnlocked[transition] }
          : { name: "applyTimed", text: apply[transition] }),
        params: [ids, versions, next, textArray(rows.map((row) => row.failReason)), identityHashs],
      };
    },
    resetBackoff: ({ topic: which, limit, stepMs, rows, skip, done }) => ({
      name: "resetBackoff",
      text: reset,
      params: [which, limit, stepMs, rows, skip, done],
    }),
  };
}

/**
 * For a clock that was set back. Locks free rows in id order; no relay works on them, because they
 * are not due. If we die right after it, those rows are due, and the rest wait for their time.
 */
function clockStatements(names: Names): Pick<HousekeepingStatements, "shortenWaits" | "readClock"> {
  const { id, state, retryCount, nextRetryAt, deliverAt } = names.column;
  const ramp = after("ramp.place * $3::bigint");
  const own =
    deliverAt === undefined
      ? ""
      : `\n      AND (m.${deliverAt} IS NULL OR m.${nextRetryAt} > m.${deliverAt} + $2::bigint * interval '1 millisecond')`;
  const forward = `UPDATE ${names.table} m
SET ${nextRetryAt} = ${deliverAt === undefined ? ramp : `GREATEST(m.${deliverAt}, ${ramp})`}${names.changed}
FROM (SELECT picked.id, row_number() OVER (ORDER BY picked.id) - 1 + $5::bigint AS place FROM (
    SELECT m.${id} AS id FROM ${names.table} m
    WHERE m.${state} = ${names.state("pending")} AND m.${retryCount} > 0
      AND m.${nextRetryAt} > ${after("$2::bigint")} AND m.${nextRetryAt} < ${instant(literal(BEHIND_BASE))}${own}${names.ofTopics}
    ORDER BY m.${id} LIMIT $1::bigint OFFSET $4::bigint FOR UPDATE SKIP LOCKED) picked) ramp
WHERE m.${id} = ramp.id`;
  return {
    readClock: () => ({
      name: "readClock",
      text: `SELECT (date_part('epoch', ${NOW}) * 1000)::bigint AS now_ms`,
      params: [],
    }),
    shortenWaits: ({ beyondMs, stepMs, rows, skip, done }) => ({
      name: "shortenWaits",
      text: forward,
      params: [rows, beyondMs, stepMs, skip, done],
    }),
  };
}

/**
 * Locks the rows in id order. A person or consumer who changed a row since it was listed has moved
 * its token, and wins. If we die right after it, every row is either as decided or still due.
 *
 * `skipLocked` locks free rows in a CTE and changes only those; the others are still due and come
 * again.
 */
function applyTexts(names: Names, skipLocked: boolean): Readonly<Record<TimedDecision["transition"], string>> {
  const { id, state } = names.column;
  const never = "timestamptz '9999-12-31T00:00:00Z'";
  const free = `WITH free AS MATERIALIZED (
  SELECT m.${id} FROM unnest($1::bigint[]) AS listed (id) JOIN ${names.table} m ON m.${id} = listed.id
  ORDER BY m.${id}
  FOR UPDATE OF m SKIP LOCKED)
`;
  return timedTexts(
    timedChanges(names, { after, never }),
    ({ from, set }) => `${skipLocked ? free : ""}UPDATE ${names.table} m
SET ${set}${names.changed}
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash)${skipLocked ? ", free" : ""}
WHERE m.${id} = decided.id${skipLocked ? ` AND m.${id} = free.${id}` : ""} AND m.${state} IN (${names.state(...from)}) AND ${names.tokenMatches("decided")}`,
  );
}

/**
 * They lock the lease rows (key share), then the free message rows; others are met again. No other
 * relay may claim them, and a person's change shows in the token. If we die right after it, each
 * row is either as it was or as decided.
 */
function fencedStatements(names: Names): Pick<HousekeepingStatements, "failPending" | "suspendPending" | "park"> {
  const { id, state, failReason, nextRetryAt } = names.column;
  const pending = `m.${state} = ${names.state("pending")} AND ${names.tokenMatches("scanned")}`;
  const scanned = tokenSource("scanned");
  const rows = `${scanned}, fence, free`;
  const own = `m.${id} = scanned.id AND fence.shard = scanned.shard AND m.${id} = free.${id}`;
  const free = `${fenceClause(names)}, free AS MATERIALIZED (
  SELECT m.${id} FROM ${scanned} JOIN fence ON fence.shard = scanned.shard JOIN ${names.table} m ON m.${id} = scanned.id
  ORDER BY m.${id}
  FOR UPDATE OF m SKIP LOCKED)`;
  const fail = `${free}
UPDATE ${names.table} m
SET ${state} = ${names.state("failed")}, ${nextRetryAt} = ${after("$8::bigint")}, ${failReason} = scanned.fail_reason${names.changed}
FROM ${tokenSource("scanned", { fail_reason: "$9::text[]" })}, fence, free
WHERE ${own} AND ${pending}`;
  const suspend = `${free}
UPDATE ${names.table} m
SET ${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("$8::bigint")}, ${failReason} = $9::text${names.changed}
FROM ${rows}
WHERE ${own} AND ${pending}${names.notDelayed}`;
  const park = `${free}
UPDATE ${names.table} m
SET ${nextRetryAt} = ${names.pendingIn("$8::bigint")}${names.changed}
FROM ${rows}
WHERE ${own} AND ${pending}`;
  return {
    failPending: ({ fence, rows: broken, nextRetryInMs }) => {
      const sorted = inIdOrder(broken);
      return {
        name: "failPending",
        text: fail,
        params: [
          ...fenceParams(fence, sorted),
          ...tokenParams(sorted),
          nextRetryInMs,
          textArray(sorted.map((row) => row.failReason)),
        ],
      };
    },
    suspendPending: ({ fence, rows: held, failReason: reason, endsInMs }) => ({
      name: "suspendPending",
      text: suspend,
      params: [...fenceParams(fence, held), ...tokenParams(inIdOrder(held)), endsInMs, reason],
    }),
    park: ({ fence, rows: parked, parkMs }) => ({
      name: "park",
      text: park,
      params: [...fenceParams(fence, parked), ...tokenParams(inIdOrder(parked)), parkMs],
    }),
  };
}

/**
 * The rows stay locked, so exactly the copied rows are deleted (rule: checked-move). ARRAY(…)
 * instead of IN (…): a generic plan takes an unknown LIMIT for a tenth of the table and walks all
 * of it.
 */
function removalStatements(names: Names): ReturnType<typeof removalCalls> {
  const { archive, table } = names;
  const { id, state, nextRetryAt, gmtModified } = names.column;
  const columns = Object.values(names.column).join(", ");
  const old = (instant: string, age: string): string =>
    `${instant} <= ${NOW} - ${age}::bigint * interval '1 millisecond'`;
  const removable = (finished: "sent" | "consumed", row: string): string =>
    `${row}.${state} = ${names.state(finished)} AND ${row}.${nextRetryAt} IS NULL`;
  const next = (finished: "sent" | "consumed"): string =>
    `SELECT next.${id} AS id FROM ${table} next WHERE ${removable(finished, "next")} AND next.${id} > $1::bigint ORDER BY next.${id}`;
  const lock = (
    finished: "sent" | "consumed",
    since: string | undefined,
  ): string => `SELECT m.${id} AS id FROM ${table} m
WHERE m.${id} = ANY (ARRAY(${next(finished)} LIMIT $2::bigint))
  AND ${removable(finished, "m")} AND ${old(`COALESCE(m.${since ?? gmtModified}, m.${gmtModified})`, "$3")}${names.ofTopics}
ORDER BY m.${id}
FOR UPDATE OF m SKIP LOCKED`;
  // Reads that many index entries and the next. No lock.
  const pass = (finished: "sent" | "consumed"): string => `${next(finished)} OFFSET $2::bigint LIMIT 1`;
  return removalCalls(
    {
      lockFinished: { sent: lock("sent", names.column.sentAt), consumed: lock("consumed", names.column.consumedAt) },
      passFinished: { sent: pass("sent"), consumed: pass("consumed") },
      copyToArchive: `INSERT INTO ${archive} (${columns}, archived_at)
SELECT ${columns}, ${NOW} FROM ${table} WHERE ${id} = ANY ($1::bigint[])`,
      deleteRows: `DELETE FROM ${table} WHERE ${id} = ANY ($1::bigint[])`,
      purgeArchive: `DELETE FROM ${archive} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${archive} WHERE ${old("archived_at", "$1")} ORDER BY archived_at LIMIT $2::bigint))`,
    },
    numberArray,
  );
}
