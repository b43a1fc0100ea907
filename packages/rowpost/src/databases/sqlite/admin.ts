/** What a person does by hand: look at messages, retry, suspend, resume. */
import type { MessageState } from "../../message/states.ts";
import type { MessageFilter, OperatorAction } from "../../outbox/message-admin.ts";
import type { LayoutColumns } from "../sql/layout.ts";
import { clip } from "../sql/rows.ts";
import { type AdminStatements, ruleReason } from "../sql/statements.ts";
import { after, isoText, jsonIds, msSince, type Names, NOW } from "./names.ts";

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
    const value =
      property === "id" ? `CAST(m.${column} AS TEXT)` : INSTANTS.has(property) ? isoText(`m.${column}`) : `m.${column}`;
    listed.push(`${value} AS ${aliasOf(property)}`);
  }
  return listed.join(", ");
}

function readStatements(names: Names): Pick<AdminStatements, "list" | "countByState" | "lockRows" | "listSuspendedBy"> {
  const { id, state, topic, gmtCreate, failReason, lockVersion } = names.column;
  const columns = listedColumns(names);
  // Everything is counted, because a person asked. The relay's gauges are bounded instead.
  const count = `SELECT m.${topic} AS topic, m.${state} AS state, count(*) AS count, ${msSince(`min(m.${gmtCreate})`)} AS oldest_age_ms
FROM ${names.table} AS m
GROUP BY m.${topic}, m.${state}`;
  // Locks nothing: the transaction around it has the file's only write lock.
  const lock = `SELECT CAST(m.${id} AS TEXT) AS id, m.${state} AS state, ${lockVersion === undefined ? "0" : `m.${lockVersion}`} AS lock_version
FROM ${names.table} AS m
WHERE m.${id} IN (SELECT value FROM json_each(?))
ORDER BY m.${id}`;
  const suspendedBy = `SELECT CAST(m.${id} AS TEXT) AS id FROM ${names.table} AS m
WHERE m.${state} = ${names.state("suspended")} AND instr(m.${failReason}, ?) = 1
ORDER BY m.${id}
LIMIT ?`;
  return {
    list({ filter, limit, beforeId, archived }) {
      const params: unknown[] = [];
      const conditions = filterConditions(names, filter, params);
      if (beforeId !== undefined) {
        conditions.push(`m.${id} < CAST(? AS INTEGER)`);
        params.push(beforeId);
      }
      const where = conditions.length === 0 ? "" : `\nWHERE ${conditions.join(" AND ")}`;
      return {
        name: "list",
        text: `SELECT ${columns}\nFROM ${archived ? names.archive : names.table} AS m${where}\nORDER BY m.${id} DESC\nLIMIT ?`,
        params: [...params, limit],
      };
    },
    countByState: () => ({ name: "countByState", text: count, params: [] }),
    lockRows: (ids) => ({ name: "lockRows", text: lock, params: [jsonIds(ids)] }),
    listSuspendedBy: ({ scope, value, limit }) => ({
      name: "listSuspendedBy",
      text: suspendedBy,
      params: [clip(ruleReason({ scope, value }), names.layout.failReasonLength), limit],
    }),
  };
}

/** Conditions of the filter's fields; their values go into `params`, in the order of the text. */
function filterConditions(names: Names, filter: MessageFilter, params: unknown[]): string[] {
  const { column } = names;
  const conditions: string[] = [];
  const add = (condition: string, value: string): void => {
    conditions.push(condition);
    params.push(value);
  };
  const equal = (name: string | undefined, value: string | undefined): void => {
    if (value === undefined) return;
    if (name === undefined) conditions.push("false");
    else add(`m.${name} = ?`, value);
  };
  if (filter.ids !== undefined) add(`m.${column.id} IN (SELECT value FROM json_each(?))`, jsonIds(filter.ids));
  equal(column.messageType, filter.type);
  equal(column.messageKey, filter.key);
  equal(column.topic, filter.topic);
  equal(column.orderingKey, filter.orderingKey);
  if (filter.states !== undefined) {
    conditions.push(filter.states.length === 0 ? "false" : `m.${column.state} IN (${names.state(...filter.states)})`);
  }
  if (filter.failReasonContains !== undefined) add(`instr(m.${column.failReason}, ?) > 0`, filter.failReasonContains);
  const instant = "strftime('%Y-%m-%d %H:%M:%f', ?)";
  if (filter.createdAfter !== undefined) add(`m.${column.gmtCreate} > ${instant}`, filter.createdAfter);
  if (filter.createdBefore !== undefined) add(`m.${column.gmtCreate} < ${instant}`, filter.createdBefore);
  return conditions;
}

function changeStatements(names: Names): Pick<AdminStatements, "operatorRetry" | "suspendRows" | "resumeRows"> {
  const { id, state, retryCount, nextRetryAt, failReason, deliverAt } = names.column;
  const author = names.set("updatedBy", "?");
  // The states are looked at once more although lockRows has: a statement must not depend on another's care.
  const change = (from: readonly MessageState[], set: string): string => `UPDATE ${names.table} AS m
SET ${set}, ${failReason} = ?${author}${names.changed}
WHERE m.${id} IN (SELECT value FROM json_each(?)) AND ${names.isIn(...from)}`;
  const retry = change(
    ["failed", "sent"],
    `${state} = ${names.state("pending")}, ${retryCount} = 0${names.set("deliveryCount", "0")}, ${nextRetryAt} = ${names.pendingNow}`,
  );
  // Without deliver_at, a row never tried with a time ahead is delayed: suspending it would lose that time (rule R10).
  const notDelayed =
    deliverAt === undefined
      ? ` AND NOT (m.${state} = ${names.state("pending")} AND COALESCE(m.${retryCount}, 0) = 0 AND m.${nextRetryAt} IS NOT NULL AND m.${nextRetryAt} > ${NOW})`
      : "";
  const suspend = `${change(
    ["pending", "failed"],
    `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after("?")}`,
  )}${notDelayed}`;
  const resume = change(["suspended"], `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}`);
  const params = (ids: readonly string[], what: string, action: OperatorAction): readonly unknown[] => [
    clip(`${what} by ${action.author}: ${action.reason}`, names.layout.failReasonLength),
    ...(names.column.updatedBy === undefined ? [] : [clip(action.author, names.layout.limits.createdBy)]),
    jsonIds(ids),
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
      params: [untilMs, ...params(ids, "suspended", action)],
    }),
    resumeRows: ({ ids, action }) => ({ name: "resumeRows", text: resume, params: params(ids, "resumed", action) }),
  };
}

function ruleStatements(names: Names): Pick<AdminStatements, "putSuspension" | "deleteSuspension"> {
  const { suspensionTable, tableKey } = names;
  const put = `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, ?, ?, ?, ?, ${after("?")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = excluded.reason, author = excluded.author, ends_at = excluded.ends_at, gmt_create = excluded.gmt_create`;
  const remove = `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = ? AND value = ?`;
  return {
    putSuspension: (rule) => ({
      name: "putSuspension",
      text: put,
      params: [rule.scope, rule.value, clip(rule.reason, 512), clip(rule.author, 64), rule.endsInMs],
    }),
    deleteSuspension: ({ scope, value }) => ({ name: "deleteSuspension", text: remove, params: [scope, value] }),
  };
}
