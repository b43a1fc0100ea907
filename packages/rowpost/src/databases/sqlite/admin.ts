/** What a person does by hand: retry, suspend, resume. */
import { allowedFrom, type TransitionName } from "../../message/states.ts";
import { RULE_WORDS } from "../../message/suspension-reason.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { operatorCalls } from "../sql/calls.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { insightStatements } from "./insight.ts";
import { after, jsonIds, msSince, type Names, NOW } from "./names.ts";

const GIVEN = "IN (SELECT value FROM json_each(?))";

/** Statements of the operator's port. */
export function adminStatements(names: Names): AdminStatements {
  const texts = { ...readTexts(names), ...changeTexts(names), ...ruleTexts(names) };
  return { ...operatorCalls(names, texts, jsonIds), ...insightStatements(names) };
}

function readTexts(names: Names): Readonly<Record<"lockRows" | "listSuspendedBy", string>> {
  const { id, state, failReason } = names.column;
  return {
    // Locks nothing: the transaction around it has the file's only write lock.
    lockRows: `SELECT CAST(m.${id} AS TEXT) AS id, m.${state} AS state, ${names.version} AS lock_version, m.${failReason} AS fail_reason
FROM ${names.table} AS m
WHERE m.${id} ${GIVEN}
ORDER BY m.${id}`,
    listSuspendedBy: `SELECT CAST(m.${id} AS TEXT) AS id, ${names.version} AS lock_version FROM ${names.table} AS m
WHERE m.${state} = ${names.state("suspended")} AND instr(m.${failReason}, ?) = 1
ORDER BY m.${id}
LIMIT ?`,
  };
}

/**
 * The states are looked at once more although lockRows has: a statement must not depend on
 * another's care. The last error stays; what a rule said when it suspended the row is over.
 */
function changeTexts(
  names: Names,
): Readonly<Record<"operatorRetry" | "bringForward" | "suspendRows" | "resumeRows", string>> {
  const { deliverAt, id, state, retryCount, nextRetryAt, failReason } = names.column;
  const change = (transition: TransitionName, set: string): string => `UPDATE ${names.table} AS m
SET ${failReason} = CASE WHEN instr(m.${failReason}, '${RULE_WORDS}') = 1 THEN NULL ELSE m.${failReason} END${names.set("updatedBy", "?")}, ${set}${names.changed}
WHERE m.${id} ${GIVEN} AND ${names.isIn(...allowedFrom(transition))}`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}`;
  const suspended = `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("?")}`;
  return {
    operatorRetry: change("operatorRetry", `${pending}, ${retryCount} = 0${names.set("deliveryCount", "0")}`),
    bringForward: `UPDATE ${names.table} AS m
SET ${nextRetryAt} = NULL${names.set("updatedBy", "?")}${names.changed}
WHERE m.${id} ${GIVEN} AND ${names.isIn("pending")} AND m.${nextRetryAt} > ${NOW} AND m.${nextRetryAt} < '${BEHIND_BASE}'
  AND ${deliverAt === undefined ? `COALESCE(m.${retryCount}, 0) > 0` : `(m.${deliverAt} IS NULL OR m.${deliverAt} <= ${NOW})`}`,
    suspendRows: `${change("suspend", suspended)}${names.notDelayed}`,
    resumeRows: change("resume", pending),
  };
}

type RuleText = "recordChange" | "lockSuspension" | "putSuspension" | "deleteSuspension";

function ruleTexts(names: Names): Readonly<Record<RuleText, string>> {
  const { auditTable, suspensionTable, tableKey } = names;
  return {
    recordChange: `INSERT INTO ${auditTable} (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES (${tableKey}, ${NOW}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    // Locks nothing: the transaction around it has the file's only write lock.
    lockSuspension: `SELECT scope, value, reason, author, -${msSince("ends_at")} AS ends_in_ms
FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = ? AND value = ?`,
    putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, ?, ?, ?, ?, ${after("?")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = excluded.reason, author = excluded.author, ends_at = excluded.ends_at, gmt_create = excluded.gmt_create`,
    deleteSuspension: `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = ? AND value = ?`,
  };
}
