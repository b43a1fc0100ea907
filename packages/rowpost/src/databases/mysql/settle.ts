/** Writes outcomes. Fenced like the claim and bound to one claim (rule: claim-token). */
import type { LayoutColumns } from "../sql/layout.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

/*
 * Cost of a settle of 500 rows beside a claim of them (default layout, 400-byte bodies, MariaDB
 * 10.11, 128 MB pool, durable commits; ms, median):
 *
 *   claim 5.4 · the same without the fence 4.2
 *   settle, every column and the pad emptied 8.1 · state alone 7.4
 *   every column without a pad 13.2 · message_id alone without a pad 12.9
 *
 * So the fence costs a quarter of a claim, and with the pad the other columns are nearly free: a
 * row that keeps its size is written in its place, a row that grows moves. Below 48 bytes
 * (message_id of 32, two DATETIME(3)) the pad does nothing; 64 leaves room for longer receipts.
 */

export function settleStatements(
  names: MysqlNames,
): Pick<RelayStatements, "settleSent" | "settleOther" | "deleteSent"> {
  const { column, state, layout } = names;
  const counted = names.has("deliveryCount");
  const consumed = `${column("state")} = ${state("consumed")}`;
  /** A row that is already `consumed` can still get its receipt. */
  const learnsReceipt = names.has("messageId");

  /**
   * Without the mark each batch also writes the lease rows by shard (`listInFlight`) on another
   * connection. A settle in id order could hold shard 5 and wait for 3 while the list holds 3 and
   * waits for 5.
   */
  const lockOrder = (from: "sending" | "pending") => (from === "pending" ? "shard" : "id");

  function set(name: keyof LayoutColumns, value: string): readonly string[] {
    return names.has(name) ? [`${column(name)} = ${value}`] : [];
  }

  /** `column = value`, except in a row that a confirmation has overtaken. */
  function setUnlessConsumed(name: keyof LayoutColumns, value: string): readonly string[] {
    if (!names.has(name)) return [];
    return set(name, learnsReceipt ? `IF(${consumed}, ${column(name)}, ${value})` : value);
  }

  return {
    /**
     * A `consumed` row only gets its receipt; its lock_version has moved, so delivery_count
     * identifies the claim. The state is written last, because assignments see earlier ones. If we
     * die before it, the message is sent again with the same identity; right after it, nothing is
     * missing.
     */
    settleSent({ fence, outcomes, elapsedMs, from }) {
      const more = `,
      delivery_count BIGINT PATH '$[5]', message_id VARCHAR(${Math.max(1, layout.messageIdLength)}) CHARACTER SET utf8mb4 PATH '$[6]', next_ms BIGINT PATH '$[7]'`;
      const assignments = [
        ...setUnlessConsumed("nextRetryAt", `IF(j.next_ms IS NULL, NULL, ${names.later("j.next_ms")})`),
        ...setUnlessConsumed("lastRetryAt", names.ago(elapsedMs)),
        ...setUnlessConsumed("failReason", "NULL"),
        ...set("messageId", "j.message_id"),
        ...set("sentAt", names.now),
        ...set("settlePad", "''"),
        ...setUnlessConsumed("state", state("sent")),
      ];
      const overtaken = learnsReceipt
        ? `\n    OR (${consumed} AND ${column("messageId")} IS NULL${counted ? ` AND ${column("deliveryCount")} = j.delivery_count` : ""} AND ${names.isSameMessage})`
        : "";
      return {
        name: "settleSent",
        text: `UPDATE ${names.fencedSource(more)}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${assignments.join(",\n    ")}${names.bumpVersion}${names.touch}
  WHERE (${column("state")} = ${state(from)} ${names.tokenMatches})${overtaken}`,
        params: [
          names.fencedRows(
            fence,
            outcomes,
            (row) => [row.deliveryCount, row.messageId, row.nextRetryInMs],
            lockOrder(from),
          ),
          names.leaseKey,
          fence.owner,
        ],
      };
    },

    /**
     * Returns rows to `pending`, or fails them. Without an attempt (retry_delta = 0) last_retry_at
     * stays.
     */
    settleOther({ fence, outcomes, elapsedMs, from }) {
      const more = `,
      failed INT PATH '$[5]', retry_delta INT PATH '$[6]', delivery_delta BIGINT PATH '$[7]', next_ms BIGINT PATH '$[8]',
      fail_reason VARCHAR(${whole(layout.failReasonLength)}) CHARACTER SET utf8mb4 PATH '$[9]'`;
      const nextRetryAt = `CASE
      WHEN j.failed = 1 THEN IF(j.next_ms IS NULL, NULL, ${names.later("j.next_ms")})
      WHEN j.next_ms IS NULL THEN ${names.atOnce}
      ELSE ${names.notBeforeDelivery(names.later("j.next_ms"))} END`;
      const assignments = [
        ...set("nextRetryAt", nextRetryAt),
        ...set("retryCount", `COALESCE(${column("retryCount")}, 0) + j.retry_delta`),
        ...set("failReason", `COALESCE(j.fail_reason, ${column("failReason")})`),
        ...(counted ? set("deliveryCount", `GREATEST(${column("deliveryCount")} + j.delivery_delta, 0)`) : []),
        ...(names.has("lastRetryAt")
          ? set("lastRetryAt", `IF(j.retry_delta = 1, ${names.ago(elapsedMs)}, ${column("lastRetryAt")})`)
          : []),
        ...set("state", `IF(j.failed = 1, ${state("failed")}, ${state("pending")})`),
      ];
      return {
        name: "settleOther",
        text: `UPDATE ${names.fencedSource(more)}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${assignments.join(",\n    ")}${names.bumpVersion}${names.touch}
  WHERE ${column("state")} = ${state(from)} ${names.tokenMatches}`,
        params: [
          names.fencedRows(
            fence,
            outcomes,
            (row) => [
              row.toState === "failed" ? 1 : 0,
              row.retryDelta,
              row.deliveryDelta,
              row.nextRetryInMs,
              row.failReason,
            ],
            lockOrder(from),
          ),
          names.leaseKey,
          fence.owner,
        ],
      };
    },

    /**
     * A multi-table DELETE locks the lease rows in share mode. A row that a confirmation has
     * overtaken is left to housekeeping. If we die before it, the message is sent again with the
     * same identity; right after it, nothing is missing.
     */
    deleteSent: ({ fence, rows, from }) => ({
      name: "deleteSent",
      text: `DELETE m FROM ${names.fencedSource()}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  WHERE ${column("state")} = ${state(from)} ${names.tokenMatches}`,
      params: [names.fencedRows(fence, rows, undefined, lockOrder(from)), names.leaseKey, fence.owner],
    }),
  };
}
