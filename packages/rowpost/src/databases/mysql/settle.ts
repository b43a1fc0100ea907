/** Writing outcomes. Both statements are fenced like the claim and belong to one claim (rule R4). */
import type { RelayStatements } from "../sql/statements.ts";
import type { MysqlNames } from "./names.ts";

export function settleStatements(names: MysqlNames): Pick<RelayStatements, "settleSent" | "settleOther"> {
  const { column, messages, state, layout } = names;
  const counted = names.has("deliveryCount");
  const text = `CHARACTER SET utf8mb4`;

  /** `, column = value` where the layout has the column. */
  function set(name: Parameters<MysqlNames["has"]>[0], value: string): string {
    return names.has(name) ? `, ${column(name)} = ${value}` : "";
  }

  return {
    /**
     * A row that a confirmation has overtaken is `consumed`: it stays so and only learns its receipt. Its lock_version has moved on, so the
     * claim is told by delivery_count there. `settle_pad` gives back what message_id, sent_at and last_retry_at take, so that the row keeps its
     * size. If we die before it, the message is sent again, with the same identity; right after it, nothing is missing.
     */
    settleSent({ fence, outcomes, elapsedMs, from }) {
      const overtaken = counted
        ? ` OR (${column("state")} = ${state("consumed")} AND ${column("deliveryCount")} = j.delivery_count)`
        : "";
      const unlessConsumed = (value: string, otherwise: string): string =>
        counted ? `IF(${column("state")} = ${state("consumed")}, ${otherwise}, ${value})` : value;
      const deadline = `IF(j.next_ms IS NULL, NULL, ${names.later("j.next_ms")})`;
      return {
        name: "settleSent",
        text: `UPDATE ${names.fencedSource(`, delivery_count BIGINT PATH '$[4]', message_id VARCHAR(${layout.messageIdLength || 1}) ${text} PATH '$[5]', next_ms BIGINT PATH '$[6]'`)}
  STRAIGHT_JOIN ${messages} AS m ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = ${unlessConsumed(deadline, column("nextRetryAt"))}${set("messageId", "j.message_id")}${set("sentAt", names.now)}${set(
    "lastRetryAt",
    `${names.nowMs} - INTERVAL ? * 1000 MICROSECOND`,
  )}, ${column("failReason")} = NULL${set("settlePad", "''")}${names.bumpVersion}${names.touch},
    ${column("state")} = ${unlessConsumed(state("sent"), state("consumed"))}
  WHERE (${column("state")} = ${state(from)} ${names.tokenMatches})${overtaken}`,
        params: [
          names.fencedRows(fence, outcomes, (row) => [row.deliveryCount, row.messageId, row.nextRetryInMs]),
          names.tableKey,
          fence.owner,
          ...(names.has("lastRetryAt") ? [elapsedMs] : []),
        ],
      };
    },

    /** Back to `pending`, or `failed`. A return that was not an attempt (delivery_delta = -1) leaves last_retry_at alone. */
    settleOther({ fence, outcomes, elapsedMs, from }) {
      const at = names.later("j.next_ms");
      const notBefore = names.has("deliverAt") ? `GREATEST(COALESCE(${column("deliverAt")}, ${at}), ${at})` : at;
      return {
        name: "settleOther",
        text: `UPDATE ${names.fencedSource(`, failed INT PATH '$[4]', retry_delta INT PATH '$[5]', delivery_delta INT PATH '$[6]', next_ms BIGINT PATH '$[7]', fail_reason VARCHAR(${layout.failReasonLength}) ${text} PATH '$[8]'`)}
  STRAIGHT_JOIN ${messages} AS m ON ${column("id")} = j.id
  SET ${column("nextRetryAt")} = CASE
      WHEN j.failed = 1 THEN IF(j.next_ms IS NULL, NULL, ${at})
      WHEN j.next_ms IS NULL THEN ${names.atOnce}
      ELSE ${notBefore} END,
    ${column("retryCount")} = COALESCE(${column("retryCount")}, 0) + j.retry_delta,
    ${column("failReason")} = COALESCE(j.fail_reason, ${column("failReason")})${set("deliveryCount", `GREATEST(${counted ? column("deliveryCount") : "0"} + j.delivery_delta, 0)`)}${set(
      "lastRetryAt",
      `IF(j.delivery_delta = 0, ${names.nowMs} - INTERVAL ? * 1000 MICROSECOND, ${names.has("lastRetryAt") ? column("lastRetryAt") : "NULL"})`,
    )}${names.bumpVersion}${names.touch},
    ${column("state")} = IF(j.failed = 1, ${state("failed")}, ${state("pending")})
  WHERE ${column("state")} = ${state(from)} ${names.tokenMatches}`,
        params: [
          names.fencedRows(fence, outcomes, (row) => [
            row.toState === "failed" ? 1 : 0,
            row.retryDelta,
            row.deliveryDelta,
            row.nextRetryInMs,
            row.failReason,
          ]),
          names.tableKey,
          fence.owner,
          ...(names.has("lastRetryAt") ? [elapsedMs] : []),
        ],
      };
    },
  };
}
