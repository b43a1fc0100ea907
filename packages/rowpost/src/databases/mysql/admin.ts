/**
 * What operators see and change. Reads are keyset-paged by id; changes lock their rows first and
 * then write them by id.
 */

import type { MessageState } from "../../message/states.ts";
import { allowedFrom } from "../../message/states.ts";
import { ruleReason } from "../../message/suspension-reason.ts";
import type { MessageFilter, OperatorAction } from "../../outbox/message-admin.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import type { LayoutColumns } from "../sql/layout.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { COMPANION_NOW, whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

const IDS = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j";

export function adminStatements(names: MysqlNames): AdminStatements {
  const { column, select, messages, state, suspensions, tableKey } = names;
  const idParam = (ids: readonly string[]): string => `[${ids.join(",")}]`;
  const byAuthor = (action: OperatorAction): { set: string; params: unknown[] } =>
    names.has("updatedBy")
      ? { set: `, ${column("updatedBy")} = LEFT(?, 64)`, params: [action.author] }
      : { set: "", params: [] };
  const reasonOf = (action: OperatorAction): string =>
    `${action.reason} (${action.author})`.slice(0, names.layout.failReasonLength);

  return {
    list({ filter, limit, beforeId, archived }) {
      const { where, params } = filterSql(names, filter);
      if (beforeId !== undefined) {
        where.push(`${column("id")} < ?`);
        params.push(beforeId);
      }
      return {
        name: archived ? "listArchived" : "list",
        text: `SELECT ${storedFields(names).join(",\n    ")}
  FROM ${archived ? names.archive : messages} AS m
  ${where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`}
  ORDER BY ${column("id")} DESC LIMIT ${whole(limit)}`,
        params,
      };
    },

    /**
     * Counts everything: a walk over the whole table, for a person who asks. The relay's gauges are
     * bounded instead.
     */
    countByState: () => ({
      name: "countByState",
      text: `SELECT ${column("topic")} AS topic, ${column("state")} AS state, COUNT(*) AS count,
    TIMESTAMPDIFF(MICROSECOND, MIN(${column("gmtCreate")}), ${names.nowMs}) DIV 1000 AS oldest_age_ms
  FROM ${messages} AS m GROUP BY ${column("topic")}, ${column("state")} ORDER BY topic, state`,
      params: [],
    }),

    /**
     * Held until the change that follows in the same transaction; in id order, like everything else
     * that locks several messages.
     */
    lockRows: (ids) => ({
      name: "lockRows",
      text: `SELECT ${column("id")} AS id, ${column("state")} AS state, ${select("lockVersion", "lock_version", "0")}
  FROM ${names.byId} WHERE ${column("id")} IN (${ids.length === 0 ? "NULL" : ids.join(", ")}) ORDER BY ${column("id")} FOR UPDATE`,
      params: [],
    }),

    /**
     * The rows are locked by lockRows already, here and in the two that follow; the states are
     * looked at once more because a statement must not depend on another's care.
     */
    operatorRetry({ ids, action }) {
      const author = byAuthor(action);
      const counts = names.has("deliveryCount") ? `, ${column("deliveryCount")} = 0` : "";
      return {
        name: "operatorRetry",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("retryCount")} = 0${counts}, ${column("nextRetryAt")} = ${names.atOnce}, ${column("failReason")} = ?${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("pending")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("operatorRetry"))})`,
        params: [idParam(ids), reasonOf(action), ...author.params],
      };
    },

    /** As operatorRetry: locked already. */
    suspendRows({ ids, action, untilMs }) {
      const author = byAuthor(action);
      return {
        name: "suspendRows",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("failReason")} = ?, ${column("nextRetryAt")} = ${untilMs === null ? "NULL" : names.later(whole(untilMs))}${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("suspended")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("suspend"))})${names.notDelayed}`,
        params: [idParam(ids), reasonOf(action), ...author.params],
      };
    },

    /** As operatorRetry: locked already. */
    resumeRows({ ids, action }) {
      const author = byAuthor(action);
      return {
        name: "resumeRows",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("failReason")} = ?, ${column("nextRetryAt")} = ${names.atOnce}${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("pending")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("resume"))})`,
        params: [idParam(ids), reasonOf(action), ...author.params],
      };
    },

    /** Locks its one rule. Relays read it at their next heartbeat. */
    putSuspension: (rule) => ({
      name: "putSuspension",
      text: `INSERT INTO ${suspensions} (table_name, scope, value, reason, author, ends_at)
  VALUES (?, ?, ?, LEFT(?, 512), LEFT(?, 64), ${rule.endsInMs === null ? "NULL" : `${COMPANION_NOW} + INTERVAL ${whole(rule.endsInMs)} * 1000 MICROSECOND`})
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), author = VALUES(author), ends_at = VALUES(ends_at)`,
      params: [tableKey, rule.scope, rule.value, rule.reason, rule.author],
    }),

    /** Locks its one rule; the messages under it are resumed by the statements after it. */
    deleteSuspension: ({ scope, value }) => ({
      name: "deleteSuspension",
      text: `DELETE FROM ${suspensions} WHERE table_name = ? AND scope = ? AND value = ?`,
      params: [tableKey, scope, value],
    }),

    listSuspendedBy: ({ scope, value, limit }) => ({
      name: "listSuspendedBy",
      text: `SELECT ${column("id")} AS id FROM ${messages} AS m
  WHERE ${column("state")} = ${state("suspended")} AND CAST(LEFT(${column("failReason")}, CHAR_LENGTH(?)) AS BINARY) = CAST(? AS BINARY)
  ORDER BY ${column("id")} LIMIT ${whole(limit)}`,
      params: [ruleReason({ scope, value }), ruleReason({ scope, value })],
    }),
  };
}

/** Fields of StoredMessage in snake_case; instants as ISO texts. */
function storedFields(names: MysqlNames): string[] {
  const { column, select } = names;
  const instant = (property: keyof LayoutColumns, alias: string): string =>
    `${names.has(property) ? names.iso(column(property)) : "NULL"} AS ${alias}`;
  return [
    `${column("id")} AS id`,
    `${column("messageType")} AS message_type`,
    `${column("messageKey")} AS message_key`,
    `${column("topic")} AS topic`,
    `${column("state")} AS state`,
    `${column("messageBody")} AS message_body`,
    select("headers", "headers", "NULL"),
    select("contentType", "content_type", "NULL"),
    select("orderingKey", "ordering_key", "NULL"),
    `${column("retryCount")} AS retry_count`,
    select("deliveryCount", "delivery_count", "0"),
    instant("deliverAt", "deliver_at"),
    // A time that tells of a head is no time of any zone.
    `IF(${column("nextRetryAt")} >= '${BEHIND_BASE}', LEFT(DATE_FORMAT(${column("nextRetryAt")}, '%Y-%m-%dT%H:%i:%s.%fZ'), 23), ${names.iso(column("nextRetryAt"))}) AS next_retry_at`,
    instant("lastRetryAt", "last_retry_at"),
    `${column("failReason")} AS fail_reason`,
    select("messageId", "message_id", "NULL"),
    select("lockVersion", "lock_version", "0"),
    instant("sentAt", "sent_at"),
    instant("consumedAt", "consumed_at"),
    select("createdBy", "created_by", "NULL"),
    select("updatedBy", "updated_by", "NULL"),
    instant("gmtCreate", "gmt_create"),
    instant("gmtModified", "gmt_modified"),
  ];
}

function filterSql(names: MysqlNames, filter: MessageFilter): { where: string[]; params: unknown[] } {
  const { column } = names;
  const where: string[] = [];
  const params: unknown[] = [];
  function equals(property: keyof LayoutColumns, value: string | undefined): void {
    if (value === undefined) return;
    where.push(names.has(property) ? `${column(property)} = ?` : "FALSE");
    if (names.has(property)) params.push(value);
  }
  if (filter.ids !== undefined) {
    where.push(`${column("id")} IN (${filter.ids.length === 0 ? "NULL" : filter.ids.map(() => "?").join(", ")})`);
    params.push(...filter.ids);
  }
  equals("messageType", filter.type);
  equals("messageKey", filter.key);
  equals("topic", filter.topic);
  equals("orderingKey", filter.orderingKey);
  if (filter.states !== undefined) {
    const states: readonly MessageState[] = filter.states;
    where.push(states.length === 0 ? "FALSE" : `${column("state")} IN (${names.states(states)})`);
  }
  if (filter.failReasonContains !== undefined) {
    where.push(`LOCATE(?, ${column("failReason")}) > 0`);
    params.push(filter.failReasonContains);
  }
  // As milliseconds, like every instant that goes into a statement; the flow has checked the texts.
  if (filter.createdAfter !== undefined) {
    where.push(`${column("gmtCreate")} > ${names.fromEpochMs("?")}`);
    params.push(Date.parse(filter.createdAfter));
  }
  if (filter.createdBefore !== undefined) {
    where.push(`${column("gmtCreate")} < ${names.fromEpochMs("?")}`);
    params.push(Date.parse(filter.createdBefore));
  }
  return { where, params };
}
