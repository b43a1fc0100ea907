/** Operator changes: rows are locked first, then written by id. */

import type { OperatorAction } from "../../admin/message-admin.ts";
import { allowedFrom } from "../../message/states.ts";
import { RULE_WORDS } from "../../message/suspension-reason.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { COMPANION_NOW, whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

const IDS = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j";

export function adminStatements(names: MysqlNames): AdminStatements {
  const { column, state, suspensions, tableKey } = names;
  const idParam = (ids: readonly string[]): string => `[${ids.join(",")}]`;
  const byAuthor = (action: OperatorAction): { set: string; params: unknown[] } =>
    names.has("updatedBy")
      ? { set: `, ${column("updatedBy")} = LEFT(?, 64)`, params: [action.author] }
      : { set: "", params: [] };
  /** Keeps the last error, but drops a suspension rule's words. */
  const lastError = `${column("failReason")} = IF(LEFT(${column("failReason")}, ${RULE_WORDS.length}) = '${RULE_WORDS}', NULL, ${column("failReason")})`;

  return {
    /**
     * lockRows has locked these rows, here and below. The states are checked again so that each
     * statement is safe by itself.
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

    /** The rows are locked already, as for operatorRetry. */
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

    /** The rows are locked already, as for operatorRetry. */
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

    /** The rows are locked already, as for operatorRetry. */
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

    /** Locks only this rule. Relays read it at their next heartbeat. */
    putSuspension: (rule) => ({
      name: "putSuspension",
      text: `INSERT INTO ${suspensions} (table_name, scope, value, reason, author, ends_at)
  VALUES (?, ?, ?, LEFT(?, 512), LEFT(?, 64), ${rule.endsInMs === null ? "NULL" : `${COMPANION_NOW} + INTERVAL ${whole(rule.endsInMs)} * 1000 MICROSECOND`})
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), author = VALUES(author), ends_at = VALUES(ends_at)`,
      params: [tableKey, rule.scope, rule.value, rule.reason, rule.author],
    }),
  };
}
