import type { TransitionName } from "../../message/states.ts";
import { allowedFrom, MESSAGE_STATES } from "../../message/states.ts";
import type { RowToken, TimedDecision } from "../../relay/store.ts";
import { inIdOrder } from "../../runtime/compare-ids.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { type HousekeepingStatements, ID_BELOW_ONE } from "../sql/statements.ts";
import { archiveStatements } from "./archive.ts";
import { behindStatements } from "./behind.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";
import { oldTransactions } from "./old-transactions.ts";

/**
 * `sent` rows without a confirmation deadline stay out of (state, NULL), which the archive reads.
 */
const NO_DEADLINE = "TIMESTAMP'9999-12-31 00:00:00'";

type Looks = "listSending" | "listTimed" | "gauges";
type Fenced = "recoverRows" | "failPending" | "suspendPending" | "park";

export function housekeepingStatements(names: MysqlNames): HousekeepingStatements {
  const { column, messages } = names;
  return {
    ...looks(names),
    ...fencedChanges(names),
    ...archiveStatements(names),
    ...behindStatements(names),
    ...clockStatements(names),
    oldTransactions,

    applyTimed: (request) => applyTimed(names, request),

    /**
     * NOT IN with constants reads the ranges between them, so known states are not read. The other
     * part is a range of the primary key that is empty in a healthy table.
     */
    listStrays: (limit) => ({
      name: "listStrays",
      text: [unknownState(names), unreached(names)]
        .map(
          (where) =>
            `(SELECT ${column("id")} AS id FROM ${messages} AS m WHERE ${where}${names.ofTopics} LIMIT ${whole(limit)})`,
        )
        .join("\nUNION ALL\n"),
      params: [],
    }),

    /** SKIP LOCKED, because a conditional UPDATE waits for every uncommitted row of a user. */
    failUnknownStates: (ids) => ({
      name: "failUnknownStates",
      text: failStrays(
        names,
        unknownState(names),
        `CONCAT('UNKNOWN_STATE: the column held ', COALESCE(${column("state")}, 'NULL'), '; retry the message, or correct the program that wrote it')`,
        ids,
      ),
      params: [],
    }),

    failUnreached: (ids) => ({
      name: "failUnreached",
      text: failStrays(names, unreached(names), `'${ID_BELOW_ONE}'`, ids),
      params: [],
    }),

    /**
     * Moves waiting rows of the topic forward, in id order, `stepMs` apart; for failed rows their
     * slow retry. Only rows that wait longer than the whole ramp, so a second call continues where
     * the first ended. Delayed rows stay (rule: delay-is-not-retry; without deliver_at those that
     * never failed), and so do rows set behind.
     */
    resetBackoff({ topic, limit, stepMs, rows, skip, done }) {
      const delayed = names.has("deliverAt")
        ? `(${column("deliverAt")} IS NULL OR ${column("deliverAt")} <= ${names.nowMs})`
        : `COALESCE(${column("retryCount")}, 0) > 0`;
      return {
        name: "resetBackoff",
        text: `UPDATE (SELECT c.id, ROW_NUMBER() OVER (ORDER BY c.id) - 1 + ${whole(done)} AS place FROM (
    SELECT ${column("id")} AS id FROM ${messages} AS m
    WHERE ${column("state")} IN (${names.states(["pending", "failed"])}) AND ${column("nextRetryAt")} > ${names.later(whole(limit * stepMs))} AND ${column("nextRetryAt")} < '${BEHIND_BASE}'
      AND ${column("topic")} = ? AND ${delayed}
    ORDER BY ${column("id")} LIMIT ${whole(rows)} OFFSET ${whole(skip)} FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = ${names.later(`j.place * ${whole(stepMs)}`)}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} IN (${names.states(["pending", "failed"])})`,
        params: [topic],
      };
    },
  };
}

/**
 * For a clock that was set back. Locks free rows in id order; no relay works on them, because they
 * are not due. If we die right after it, those rows are due, and the rest wait for their time.
 */
function clockStatements(names: MysqlNames): Pick<HousekeepingStatements, "shortenWaits" | "readClock"> {
  const { column, messages, state } = names;
  const own = (ms: string): string =>
    names.has("deliverAt")
      ? `\n      AND (${column("deliverAt")} IS NULL OR ${column("nextRetryAt")} > ${column("deliverAt")} + INTERVAL ${ms} * 1000 MICROSECOND)`
      : "";
  return {
    readClock: () => ({
      name: "readClock",
      text: "SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 AS now_ms",
      params: [],
    }),
    shortenWaits: ({ beyondMs, stepMs, rows, skip, done }) => ({
      name: "shortenWaits",
      text: `UPDATE (SELECT c.id, ROW_NUMBER() OVER (ORDER BY c.id) - 1 + ${whole(done)} AS place FROM (
    SELECT ${column("id")} AS id FROM ${messages} AS m
    WHERE ${column("state")} = ${state("pending")} AND ${column("retryCount")} > 0
      AND ${column("nextRetryAt")} > ${names.later(whole(beyondMs))} AND ${column("nextRetryAt")} < '${BEHIND_BASE}'${own(whole(beyondMs))}${names.ofTopics}
    ORDER BY ${column("id")} LIMIT ${whole(rows)} OFFSET ${whole(skip)} FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = ${names.notBeforeDelivery(names.later(`j.place * ${whole(stepMs)}`))}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} = ${state("pending")}`,
      params: [],
    }),
  };
}

function unknownState({ column, states }: MysqlNames): string {
  return `(${column("state")} NOT IN (${states(MESSAGE_STATES)}) OR ${column("state")} IS NULL)`;
}

function unreached({ column, state }: MysqlNames): string {
  return `${column("id")} < 1 AND ${column("state")} = ${state("pending")}`;
}

/**
 * Locks the free rows that match and fails them. If we die right after it, the reason is on the
 * row.
 */
function failStrays(names: MysqlNames, where: string, reason: string, ids: readonly string[]): string {
  const { column, state } = names;
  return `UPDATE (SELECT c.id FROM (SELECT ${column("id")} AS id FROM ${names.byId}
    WHERE ${column("id")} IN (${ids.length === 0 ? "NULL" : ids.join(", ")}) AND ${where}
    LIMIT ${whole(ids.length)} FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("failReason")} = ${reason},
    ${column("nextRetryAt")} = NULL${names.bumpVersion}${names.touch}, ${column("state")} = ${state("failed")}`;
}

function looks(names: MysqlNames): Pick<HousekeepingStatements, Looks> {
  const { column, messages, state } = names;
  const token = `${names.shardOf} AS shard, ${names.tokenColumns}`;
  return {
    listSending({ shards, limit }) {
      const ours = shards === undefined ? "" : `AND ${names.shardOf} IN (${shards.map(whole).join(", ")})`;
      return {
        name: "listSending",
        text: `SELECT ${column("id")} AS id, ${column("topic")} AS topic, ${token}
  FROM ${messages} AS m
  WHERE ${column("state")} = ${state("sending")} ${ours}${names.ofTopics} LIMIT ${whole(limit)}`,
        params: [],
      };
    },

    /** One range of (state, next_retry_at) per state, each limited to LIMIT rows. */
    listTimed: (limit) => ({
      name: "listTimed",
      text: (["sent", "failed", "suspended"] as const)
        .map(
          (
            from,
          ) => `(SELECT ${column("id")} AS id, ${column("state")} AS state, ${column("messageType")} AS message_type,
    ${column("messageKey")} AS message_key, ${column("topic")} AS topic, ${column("retryCount")} AS retry_count, ${token},
    TIMESTAMPDIFF(MICROSECOND, ${column("gmtCreate")}, ${names.nowMs}) DIV 1000 AS age_ms,
    ${column("failReason")} AS fail_reason
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state(from)} AND ${column("nextRetryAt")} <= ${names.nowMs}${names.ofTopics}
  ORDER BY ${column("nextRetryAt")} LIMIT ${whole(limit)})`,
        )
        .join("\nUNION ALL\n"),
      params: [],
    }),

    /**
     * Unfinished rows only, at most `limit` per state, so a gauge never costs as much as a drain.
     * Newest failed rows first: behind 10,000 old ones, those of another topic would be missed.
     */
    gauges: (limit, failedLimit = limit) => ({
      name: "gauges",
      text: `SELECT g.topic AS topic, g.state AS state, COUNT(*) AS count, MAX(TIMESTAMPDIFF(MICROSECOND, g.since, ${names.nowMs})) DIV 1000 AS oldest_age_ms
  FROM (
${[
  ...(["pending", "sending", "suspended"] as const).map(
    (each) => `${column("state")} = ${state(each)} LIMIT ${whole(limit)}`,
  ),
  `${column("state")} = ${state("failed")} AND ${column("nextRetryAt")} IS NULL ORDER BY ${column("id")} DESC LIMIT ${whole(failedLimit)}`,
  `${column("state")} = ${state("failed")} AND ${column("nextRetryAt")} IS NOT NULL ORDER BY ${column("nextRetryAt")} DESC LIMIT ${whole(failedLimit)}`,
]
  .map(
    (which) => `    (SELECT ${column("topic")} AS topic, ${column("state")} AS state, ${column("gmtCreate")} AS since
      FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${which})`,
  )
  .join("\n    UNION ALL\n")}
  ) AS g GROUP BY g.topic, g.state`,
      params: [],
    }),
  };
}

/**
 * Changes to rows that a relay scanned or claimed; fenced, token compared. They lock the free
 * message rows before the join (LIMIT prevents a merge into the join, which would block); rows that
 * a user holds are met again. Lease rows are locked in share mode. No other relay may claim the
 * rows, and a person's change shows in the token. If we die right after it, each row is either as
 * it was or as decided.
 */
function fencedChanges(names: MysqlNames): Pick<HousekeepingStatements, Fenced> {
  const { column, state } = names;
  const rows = (list: readonly RowToken[], more = ""): string =>
    `UPDATE ${names.fencedSource(more)}
  STRAIGHT_JOIN (SELECT ${column("id")} AS id FROM ${names.byId} WHERE ${column("id")} IN (${list.map(({ id }) => id).join(", ")})
    LIMIT ${whole(list.length)} FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`;
  return {
    /** Fenced like the claim: after a takeover the successor has returned the rows already. */
    recoverRows: ({ fence, rows: list }) => ({
      name: "recoverRows",
      text: `${rows(list)}
  SET ${column("nextRetryAt")} = ${names.atOnce}${names.bumpVersion}${names.touch}, ${column("state")} = ${state("pending")}
  WHERE ${column("state")} = ${state("sending")} ${names.tokenMatches}`,
      params: [names.fencedRows(fence, list), names.leaseKey, fence.owner],
    }),

    failPending: ({ fence, rows: list, nextRetryInMs }) => ({
      name: "failPending",
      text: `${rows(list, `, fail_reason VARCHAR(${names.layout.failReasonLength}) CHARACTER SET utf8mb4 PATH '$[5]'`)}
  SET ${column("failReason")} = j.fail_reason, ${column("nextRetryAt")} = ${nextRetryInMs === null ? "NULL" : names.later(whole(nextRetryInMs))}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("failed")}
  WHERE ${column("state")} = ${state("pending")} ${names.tokenMatches}`,
      params: [names.fencedRows(fence, list, (row) => [row.failReason]), names.leaseKey, fence.owner],
    }),

    suspendPending: ({ fence, rows: list, failReason, endsInMs }) => ({
      name: "suspendPending",
      text: `${rows(list)}
  SET ${column("failReason")} = ?, ${column("nextRetryAt")} = ${endsInMs === null ? "NULL" : names.later(whole(endsInMs))}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("suspended")}
  WHERE ${column("state")} = ${state("pending")} ${names.tokenMatches}${names.notDelayed}`,
      params: [names.fencedRows(fence, list), names.leaseKey, fence.owner, failReason],
    }),

    /** Not a transition: the row stays pending until later, never before deliver_at. */
    park: ({ fence, rows: list, parkMs }) => ({
      name: "park",
      text: `${rows(list)}
  SET ${column("nextRetryAt")} = ${names.notBeforeDelivery(names.later(whole(parkMs)))}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} = ${state("pending")} ${names.tokenMatches}`,
      params: [names.fencedRows(fence, list), names.leaseKey, fence.owner],
    }),
  };
}

/**
 * Locks the rows in id order. A person or consumer who changed a row since it was listed has moved
 * its token, and wins. If we die right after it, every row is either as decided or still due.
 *
 * `skipLocked` locks and changes free rows only; the others are still due and come again. LIMIT
 * keeps the optimizer from merging the read into the join, which would block.
 */
function applyTimed(
  names: MysqlNames,
  { transition, decisions, skipLocked }: Parameters<HousekeepingStatements["applyTimed"]>[0],
): ReturnType<HousekeepingStatements["applyTimed"]> {
  const { column, state } = names;
  const later = `IF(j.next_ms IS NULL, NULL, ${names.later("j.next_ms")})`;
  const reason = `${column("failReason")} = COALESCE(j.fail_reason, ${column("failReason")})`;
  // The claim has counted. Otherwise a slow retry would look like a recovery (rule:
  // crash-counting).
  const counted = `${column("retryCount")} = COALESCE(${column("retryCount")}, 0) + 1`;
  const changes: Record<TimedDecision["transition"], string> = {
    slowRetry: `${column("nextRetryAt")} = ${names.atOnce}, ${column("state")} = ${state("pending")}`,
    resume: `${column("nextRetryAt")} = ${names.atOnce}, ${column("state")} = ${state("pending")}`,
    confirmTimeoutResend: `${reason}, ${counted}, ${column("nextRetryAt")} = ${later}, ${column("state")} = ${state("pending")}`,
    confirmTimeoutFail: `${reason}, ${counted}, ${column("nextRetryAt")} = ${later}, ${column("state")} = ${state("failed")}`,
    clearTimer: `${column("nextRetryAt")} = IF(${column("state")} = ${state("sent")}, ${NO_DEADLINE}, NULL)`,
  };
  const from =
    transition === "clearTimer" ? (["sent", "failed"] as const) : allowedFrom(transition satisfies TransitionName);
  const free = `(SELECT ${column("id")} AS id FROM ${names.byId} WHERE ${column("id")} IN (${decisions.map(({ id }) => id).join(", ")})
    LIMIT ${whole(decisions.length)} FOR UPDATE SKIP LOCKED)`;
  return {
    name: `applyTimed.${transition}${skipLocked === true ? ".unlocked" : ""}`,
    text: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(${names.layout.failReasonLength}) CHARACTER SET utf8mb4 PATH '$[4]')) AS j${skipLocked === true ? `\n  STRAIGHT_JOIN ${free} AS f ON f.id = j.id` : ""}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${changes[transition]}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} IN (${names.states(from)}) ${names.tokenMatches}`,
    params: [
      `[${inIdOrder(decisions)
        .map(
          (row) =>
            `[${row.id},${row.lockVersion},${row.identityHash},${row.nextRetryInMs ?? "null"},${JSON.stringify(row.failReason)}]`,
        )
        .join(",")}]`,
    ],
  };
}
