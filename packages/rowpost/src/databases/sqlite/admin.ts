/** What a person does by hand: retry, suspend, resume. */
import { allowedFrom, type TransitionName } from "../../message/states.ts";
import { operatorCalls } from "../sql/calls.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { insightStatements } from "./insight.ts";
import { after, jsonIds, type Names, NOW } from "./names.ts";

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
    lockRows: `SELECT CAST(m.${id} AS TEXT) AS id, m.${state} AS state, ${names.read("lockVersion", "0")} AS lock_version
FROM ${names.table} AS m
WHERE m.${id} ${GIVEN}
ORDER BY m.${id}`,
    listSuspendedBy: `SELECT CAST(m.${id} AS TEXT) AS id, ${names.read("lockVersion", "0")} AS lock_version FROM ${names.table} AS m
WHERE m.${state} = ${names.state("suspended")} AND instr(m.${failReason}, ?) = 1
ORDER BY m.${id}
LIMIT ?`,
  };
}

/**
 * The states are looked at once more although lockRows has: a statement must not depend on
 * another's care.
 */
function changeTexts(names: Names): Readonly<Record<"operatorRetry" | "suspendRows" | "resumeRows", string>> {
  const { id, state, retryCount, nextRetryAt, failReason } = names.column;
  const change = (transition: TransitionName, set: string): string => `UPDATE ${names.table} AS m
SET ${failReason} = ?${names.set("updatedBy", "?")}, ${set}${names.changed}
WHERE m.${id} ${GIVEN} AND ${names.isIn(...allowedFrom(transition))}`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}`;
  const suspended = `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("?")}`;
  return {
    operatorRetry: change("operatorRetry", `${pending}, ${retryCount} = 0${names.set("deliveryCount", "0")}`),
    suspendRows: `${change("suspend", suspended)}${names.notDelayed}`,
    resumeRows: change("resume", pending),
  };
}

function ruleTexts(names: Names): Readonly<Record<"putSuspension" | "deleteSuspension", string>> {
  const { suspensionTable, tableKey } = names;
  return {
    putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, ?, ?, ?, ?, ${after("?")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = excluded.reason, author = excluded.author, ends_at = excluded.ends_at, gmt_create = excluded.gmt_create`,
    deleteSuspension: `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = ? AND value = ?`,
  };
}
