/** What a person does by hand: retry, suspend, resume. */
import { RULE_WORDS } from "../../message/suspension-reason.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { operatorCalls } from "../sql/calls.ts";
import { literal } from "../sql/sql-names.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { insightStatements } from "./insight.ts";
import { after, instant, msBetween, type Names, NOW, numberArray } from "./names.ts";

/** Statements of the operator's port. */
export function adminStatements(names: Names): AdminStatements {
  const { suspensionTable, table, tableKey } = names;
  const { failReason, id, state } = names.column;
  const calls = operatorCalls(
    names,
    {
      // Held until the change that follows in the same transaction; in id order, like everything
      // else that locks several messages.
      lockRows: `SELECT m.${id} AS id, m.${state} AS state, ${names.version} AS lock_version, m.${failReason} AS fail_reason
FROM ${table} m
WHERE m.${id} = ANY ($1::bigint[])
ORDER BY m.${id}
FOR UPDATE OF m`,
      ...changeTexts(names),
      // Adds a row of its own; commits, or does not, with the change that it tells of.
      recordChange: `INSERT INTO ${names.auditTable} (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES (${tableKey}, ${NOW}, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
      // Of two that change one rule at once, the later one sees what the first one wrote.
      lockSuspension: `SELECT scope, value, reason, author, ${msBetween(NOW, "ends_at")} AS ends_in_ms
FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = $1 AND value = $2 FOR UPDATE`,
      // Locks its one rule. Relays read it at their next heartbeat.
      putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, $1, $2, $3, $4, ${after("$5::bigint")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create`,
      // Locks its one rule; the messages under it are resumed by the statements after it.
      deleteSuspension: `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = $1 AND value = $2`,
      listSuspendedBy: `SELECT m.${id} AS id, ${names.version} AS lock_version FROM ${table} m
WHERE m.${state} = ${names.state("suspended")} AND starts_with(m.${failReason}, $1)
ORDER BY m.${id}
LIMIT $2::bigint`,
    },
    numberArray,
  );
  return { ...calls, ...insightStatements(names) };
}

/**
 * The rows are locked by lockRows already; the states are looked at once more because a statement
 * must not depend on another's care. The last error stays; what a rule said when it suspended the
 * row is over. Values: $1 author where the layout has updated_by, then the milliseconds of a
 * suspension, then the ids.
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
