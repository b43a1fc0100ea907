import { RULE_WORDS } from "../../message/suspension-reason.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { operatorCalls } from "../sql/calls.ts";
import { literal } from "../sql/sql-names.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { after, instant, type Names, NOW, numberArray } from "./names.ts";

export function adminStatements(names: Names): AdminStatements {
  const { suspensionTable, tableKey } = names;
  return operatorCalls(
    names,
    {
      ...changeTexts(names),
      // Locks only this rule. Relays read it at their next heartbeat.
      putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, $1, $2, $3, $4, ${after("$5::bigint")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create`,
    },
    numberArray,
  );
}

/**
 * lockRows has locked the rows; the states are checked again so that the statement is safe by
 * itself. Keeps the last error, but drops a suspension rule's words. Values: $1 author if the
 * layout has updated_by, then the suspension in milliseconds, then the ids.
 */
function changeTexts(
  names: Names,
): Readonly<Record<"operatorRetry" | "bringForward" | "suspendRows" | "resumeRows", string>> {
  const { deliverAt, failReason, id, nextRetryAt, retryCount, state } = names.column;
  const next = names.column.updatedBy === undefined ? 1 : 2;
  const lastError = `${failReason} = CASE WHEN NOT starts_with(m.${failReason}, '${RULE_WORDS}') THEN m.${failReason} END`;
  const change = (set: string, from: string, ids: number): string => `UPDATE ${names.table} m
SET ${set}, ${lastError}${names.set("updatedBy", "$1::text")}${names.changed}
WHERE m.${id} = ANY ($${ids}::bigint[]) AND m.${state} IN (${from})`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}`;
  return {
    operatorRetry: change(
      `${pending}, ${retryCount} = 0${names.set("deliveryCount", "0")}`,
      names.from("operatorRetry"),
      next,
    ),
    bringForward: `UPDATE ${names.table} m
SET ${nextRetryAt} = NULL${names.set("updatedBy", "$1::text")}${names.changed}
WHERE m.${id} = ANY ($${next}::bigint[]) AND m.${state} = ${names.state("pending")}
  AND m.${nextRetryAt} > ${NOW} AND m.${nextRetryAt} < ${instant(literal(BEHIND_BASE))}
  AND (${deliverAt === undefined ? `COALESCE(m.${retryCount}, 0) = 0` : `m.${deliverAt} > ${NOW}`}) IS NOT TRUE`,
    suspendRows: `${change(
      `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after(`$${next}::bigint`)}`,
      names.from("suspend"),
      next + 1,
    )}${names.notDelayed}`,
    resumeRows: change(pending, names.from("resume"), next),
  };
}
