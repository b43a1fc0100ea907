/** What a person does by hand: look at messages, retry, suspend, resume. */
import type { MessageFilter, OperatorAction } from "../../outbox/message-admin.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { LayoutColumns } from "../sql/layout.ts";
import { clip } from "../sql/rows.ts";
import { type AdminStatements, ruleReason } from "../sql/statements.ts";
import { after, isoText, msBetween, type Names, NOW, numberArray } from "./names.ts";

/** Statements of the operator's port. */
export function adminStatements(names: Names): AdminStatements {
  return { ...readStatements(names), ...changeStatements(names), ...ruleStatements(names) };
}

/** Columns that are instants; they come back as ISO 8601 text. */
const INSTANTS: ReadonlySet<keyof LayoutColumns> = new Set([
  "nextRetryAt",
  "lastRetryAt",
  "deliverAt",
  "sentAt",
  "consumedAt",
  "gmtCreate",
  "gmtModified",
]);

/** snake_case of a property, which is the alias that the flow reads. */
function aliasOf(property: string): string {
  return property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function listedColumns(names: Names): string {
  const listed: string[] = [];
  for (const property of Object.keys(names.column) as (keyof LayoutColumns)[]) {
    const column = names.column[property];
    if (column === undefined) continue;
    listed.push(`${INSTANTS.has(property) ? isoText(`m.${column}`) : `m.${column}`} AS ${aliasOf(property)}`);
  }
  return listed.join(", ");
}

function readStatements(names: Names): Pick<AdminStatements, "list" | "countByState" | "lockRows" | "listSuspendedBy"> {
  const { id, state, topic, gmtCreate, failReason, lockVersion } = names.column;
  const columns = listedColumns(names);
  // Everything is counted, because a person asked: 200 ms for a million rows. The relay's gauges are bounded instead.
  const count = `SELECT m.${topic} AS topic, m.${state} AS state, count(*) AS count, ${msBetween(`min(m.${gmtCreate})`, NOW)} AS oldest_age_ms
FROM ${names.table} m
GROUP BY m.${topic}, m.${state}`;
  // Held until the change that follows in the same transaction; in id order, like everything else that locks several messages.
  const lock = `SELECT m.${id} AS id, m.${state} AS state, ${lockVersion === undefined ? "0::bigint" : `m.${lockVersion}`} AS lock_version
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])
ORDER BY m.${id}
FOR UPDATE OF m`;
  const suspendedBy = `SELECT m.${id} AS id FROM ${names.table} m
WHERE m.${state} = ${names.state("suspended")} AND starts_with(m.${failReason}, $1)
ORDER BY m.${id}
LIMIT $2::bigint`;
  return {
    list({ filter, limit, beforeId, archived }): Statement {
      const params: unknown[] = [];
      const conditions = filterConditions(names, filter, params);
      if (beforeId !== undefined) conditions.push(`m.${id} < $${params.push(beforeId)}::bigint`);
      const where = conditions.length === 0 ? "" : `\nWHERE ${conditions.join(" AND ")}`;
      return {
        name: "list",
        text: `SELECT ${columns}\nFROM ${archived ? names.archive : names.table} m${where}\nORDER BY m.${id} DESC\nLIMIT $${params.push(limit)}::bigint`,
        params,
      };
    },
    countByState: () => ({ name: "countByState", text: count, params: [] }),
    lockRows: (ids) => ({ name: "lockRows", text: lock, params: [numberArray(ids)] }),
    listSuspendedBy: ({ scope, value, limit }) => ({
      name: "listSuspendedBy",
      text: suspendedBy,
      params: [clip(ruleReason({ scope, value }), names.layout.failReasonLength), limit],
    }),
  };
}

/** Conditions of the filter's fields; their values go into `params`. */
function filterConditions(names: Names, filter: MessageFilter, params: unknown[]): string[] {
  const { column } = names;
  const conditions: string[] = [];
  const equal = (name: string | undefined, value: string | undefined): void => {
    if (value === undefined) return;
    conditions.push(name === undefined ? "false" : `m.${name} = $${params.push(value)}`);
  };
  if (filter.ids !== undefined)
    conditions.push(`m.${column.id} = ANY ($${params.push(numberArray(filter.ids))}::bigint[])`);
  equal(column.messageType, filter.type);
  equal(column.messageKey, filter.key);
  equal(column.topic, filter.topic);
  equal(column.orderingKey, filter.orderingKey);
  if (filter.states !== undefined) {
    conditions.push(filter.states.length === 0 ? "false" : `m.${column.state} IN (${names.state(...filter.states)})`);
  }
  if (filter.failReasonContains !== undefined) {
    conditions.push(`position($${params.push(filter.failReasonContains)} IN m.${column.failReason}) > 0`);
  }
  if (filter.createdAfter !== undefined)
    conditions.push(`m.${column.gmtCreate} > $${params.push(filter.createdAfter)}::timestamptz`);
  if (filter.createdBefore !== undefined)
    conditions.push(`m.${column.gmtCreate} < $${params.push(filter.createdBefore)}::timestamptz`);
  return conditions;
}

function changeStatements(names: Names): Pick<AdminStatements, "operatorRetry" | "suspendRows" | "resumeRows"> {
  const { id, state, retryCount, nextRetryAt, failReason, deliverAt } = names.column;
  const author = names.set("updatedBy", "$2::text");
  // The rows are locked by lockRows already; the states are looked at once more because a statement must not depend on another's care.
  const change = (from: string, set: string): string => `UPDATE ${names.table} m
SET ${set}${author}${names.changed}
WHERE m.${id} = ANY ($1::bigint[]) AND m.${state} IN (${from}) AND $2::text IS NOT NULL`;
  const retry = change(
    names.state("failed", "sent"),
    `${state} = ${names.state("pending")}, ${retryCount} = 0${names.set("deliveryCount", "0")}, ${nextRetryAt} = ${names.pendingNow}, ${failReason} = $3::text`,
  );
  // Without deliver_at, a row never tried with a time ahead is delayed: suspending it would lose that time (rule R10).
  const notDelayed =
    deliverAt === undefined
      ? ` AND NOT (m.${state} = ${names.state("pending")} AND COALESCE(m.${retryCount}, 0) = 0 AND m.${nextRetryAt} IS NOT NULL AND m.${nextRetryAt} > ${NOW})`
      : "";
  const suspend = `${change(
    names.state("pending", "failed"),
    `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("$4::bigint")}, ${failReason} = $3::text`,
  )}${notDelayed}`;
  const resume = change(
    names.state("suspended"),
    `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}, ${failReason} = $3::text`,
  );
  const params = (ids: readonly string[], what: string, action: OperatorAction): readonly unknown[] => [
    numberArray(ids),
    clip(action.author, names.layout.limits.createdBy),
    clip(`${what} by ${action.author}: ${action.reason}`, names.layout.failReasonLength),
  ];
  return {
    operatorRetry: ({ ids, action }) => ({
      name: "operatorRetry",
      text: retry,
      params: params(ids, "retried", action),
    }),
    suspendRows: ({ ids, action, untilMs }) => ({
      name: "suspendRows",
      text: suspend,
      params: [...params(ids, "suspended", action), untilMs],
    }),
    resumeRows: ({ ids, action }) => ({ name: "resumeRows", text: resume, params: params(ids, "resumed", action) }),
  };
}

function ruleStatements(names: Names): Pick<AdminStatements, "putSuspension" | "deleteSuspension"> {
  const { suspensionTable, tableKey } = names;
  const put = `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, $1, $2, $3, $4, ${after("$5::bigint")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create`;
  const remove = `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = $1 AND value = $2`;
  return {
    putSuspension: (rule) => ({
      name: "putSuspension",
      text: put,
      params: [rule.scope, rule.value, clip(rule.reason, 512), clip(rule.author, 64), rule.endsInMs],
    }),
    deleteSuspension: ({ scope, value }) => ({ name: "deleteSuspension", text: remove, params: [scope, value] }),
  };
}
