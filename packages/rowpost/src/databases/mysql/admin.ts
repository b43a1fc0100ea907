/** What operators change: they lock their rows first and then write them by id. */

import { allowedFrom } from "../../message/states.ts";
import { RULE_WORDS, ruleReason } from "../../message/suspension-reason.ts";
import type { OperatorAction } from "../../outbox/message-admin.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import { auditValues } from "../sql/calls.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { COMPANION_NOW, whole } from "./clock.ts";
import { insightStatements } from "./insight.ts";
import type { MysqlNames } from "./names.ts";

const IDS = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j";

export function adminStatements(names: MysqlNames): AdminStatements {
  const { column, select, messages, state, suspensions, tableKey } = names;
  const idParam = (ids: readonly string[]): string => `[${ids.join(",")}]`;
  const byAuthor = (action: OperatorAction): { set: string; params: unknown[] } =>
    names.has("updatedBy")
      ? { set: `, ${column("updatedBy")} = LEFT(?, 64)`, params: [action.author] }
      : { set: "", params: [] };
  /** The last error stays; what a rule said when it suspended the row is over. */
  const lastError = `${column("failReason")} = IF(LEFT(${column("failReason")}, ${RULE_WORDS.length}) = '${RULE_WORDS}', NULL, ${column("failReason")})`;

  return {
    ...insightStatements(names),

    /**
     * Held until the change that follows in the same transaction; in id order, like everything else
     * that locks several messages.
     */
    lockRows: (ids) => ({
      name: "lockRows",
      text: `SELECT ${column("id")} AS id, ${column("state")} AS state, ${select("lockVersion", "lock_version", "0")}, ${column("failReason")} AS fail_reason
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
  SET ${column("retryCount")} = 0${counts}, ${column("nextRetryAt")} = ${names.atOnce}, ${lastError}${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("pending")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("operatorRetry"))})`,
        params: [idParam(ids), ...author.params],
      };
    },

    /** As operatorRetry: locked already. */
    bringForward({ ids, action }) {
      const author = byAuthor(action);
      const tried = names.has("deliverAt")
        ? `(${column("deliverAt")} IS NULL OR ${column("deliverAt")} <= ${names.nowMs})`
        : `COALESCE(${column("retryCount")}, 0) > 0`;
      return {
        name: "bringForward",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = NULL${author.set}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} > ${names.nowMs} AND ${column("nextRetryAt")} < '${BEHIND_BASE}' AND ${tried}`,
        params: [idParam(ids), ...author.params],
      };
    },

    /** As operatorRetry: locked already. */
    suspendRows({ ids, action, untilMs }) {
      const author = byAuthor(action);
      return {
        name: "suspendRows",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${lastError}, ${column("nextRetryAt")} = ${untilMs === null ? "NULL" : names.later(whole(untilMs))}${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("suspended")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("suspend"))})${names.notDelayed}`,
        params: [idParam(ids), ...author.params],
      };
    },

    /** As operatorRetry: locked already. */
    resumeRows({ ids, action }) {
      const author = byAuthor(action);
      return {
        name: "resumeRows",
        text: `UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${lastError}, ${column("nextRetryAt")} = ${names.atOnce}${author.set}${names.bumpVersion}${names.touch},
    ${column("state")} = ${state("pending")}
  WHERE ${column("state")} IN (${names.states(allowedFrom("resume"))})`,
        params: [idParam(ids), ...author.params],
      };
    },

    /** Adds a row of its own; commits, or does not, with the change that it tells of. */
    recordChange: (entry) => ({
      name: "recordChange",
      text: `INSERT INTO ${names.audit} (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
  VALUES (?, ${COMPANION_NOW}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [tableKey, ...auditValues(entry)],
    }),

    /** Of two that change one rule at once, the later one sees what the first one wrote. */
    lockSuspension: ({ scope, value }) => ({
      name: "lockSuspension",
      text: `SELECT scope, value, reason, author, TIMESTAMPDIFF(MICROSECOND, ${COMPANION_NOW}, ends_at) DIV 1000 AS ends_in_ms
  FROM ${suspensions} WHERE table_name = ? AND scope = ? AND value = ? FOR UPDATE`,
      params: [tableKey, scope, value],
    }),

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
      text: `SELECT ${column("id")} AS id, ${select("lockVersion", "lock_version", "0")} FROM ${messages} AS m
  WHERE ${column("state")} = ${state("suspended")} AND CAST(LEFT(${column("failReason")}, CHAR_LENGTH(?)) AS BINARY) = CAST(? AS BINARY)
  ORDER BY ${column("id")} LIMIT ${whole(limit)}`,
      params: [ruleReason({ scope, value }), ruleReason({ scope, value })],
    }),
  };
}
