import { allowedFrom, type TransitionName } from "../../message/states.ts";
import { RULE_WORDS } from "../../message/suspension-reason.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { operatorCalls } from "../sql/calls.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { after, jsonIds, type Names, NOW } from "./names.ts";

const GIVEN = "IN (SELECT value FROM json_each(?))";

export function adminStatements(names: Names): AdminStatements {
  const texts = { ...changeTexts(names), ...ruleTexts(names) };
  return operatorCalls(names, texts, jsonIds);
}

/**
 * Checks the states again, so that the statement is safe by itself. Keeps the last error, but drops
 * a suspension rule's words.
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

function ruleTexts({ suspensionTable, tableKey }: Names): Readonly<Record<"putSuspension", string>> {
  return {
    putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, ?, ?, ?, ?, ${after("?")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = excluded.reason, author = excluded.author, ends_at = excluded.ends_at, gmt_create = excluded.gmt_create`,
  };
}
