/**
 * Outcomes of a batch. Fenced (see `fenceCondition`) and bound to one claim (rule: claim-token).
 */
import type { RelayStatements } from "../sql/statements.ts";
import { after, before, fenceCondition, fenceParams, type Names, NOW, tokenRows, tokenSource } from "./names.ts";

type From = "sending" | "pending";

export function settleStatements(names: Names): Pick<RelayStatements, "settleSent" | "settleOther" | "deleteSent"> {
  const both = (text: (names: Names, from: From) => string): Readonly<Record<From, string>> => ({
    pending: text(names, "pending"),
    sending: text(names, "sending"),
  });
  const [sent, other, deleted] = [both(settleSentText), both(settleOtherText), both(deleteSentText)];
  const elapsed = (elapsedMs: number): readonly number[] => (names.column.lastRetryAt === undefined ? [] : [elapsedMs]);
  return {
    settleSent: ({ fence, outcomes, elapsedMs, from }) => ({
      name: "settleSent",
      text: sent[from],
      params: [
        ...elapsed(elapsedMs),
        tokenRows(outcomes, (row) => [row.nextRetryInMs, row.deliveryCount, row.messageId]),
        ...fenceParams(fence),
      ],
    }),
    settleOther: ({ fence, outcomes, elapsedMs, from }) => ({
      name: "settleOther",
      text: other[from],
      params: [
        ...elapsed(elapsedMs),
        tokenRows(outcomes, (row) => [
          row.nextRetryInMs,
          row.toState === "failed" ? 1 : 0,
          row.retryDelta,
          row.deliveryDelta,
          row.failReason,
        ]),
        ...fenceParams(fence),
      ],
    }),
    deleteSent: ({ fence, rows, from }) => ({
      name: "deleteSent",
      text: deleted[from],
      params: [tokenRows(rows), ...fenceParams(fence)],
    }),
  };
}

/**
 * A row that a confirmation overtook into `consumed` only gets its receipt; its lock_version has
 * moved, so delivery_count identifies the claim. If we die right after it, nothing is missing.
 */
function settleSentText(names: Names, from: From): string {
  const { id, state, nextRetryAt, failReason, deliveryCount, messageId, lastRetryAt } = names.column;
  const consumed = names.isIn("consumed");
  const unlessConsumed = (column: string | undefined, expression: string): string =>
    `CASE WHEN ${consumed} THEN m.${column} ELSE ${expression} END`;
  const sameClaim = deliveryCount === undefined ? "" : ` AND m.${deliveryCount} = outcome.delivery_count`;
  const overtaken =
    messageId === undefined
      ? ""
      : `\n    OR (${consumed} AND m.${messageId} IS NULL${sameClaim} AND ${names.isSameMessage("outcome")})`;
  return `UPDATE ${names.table} AS m
SET ${state} = ${unlessConsumed(state, names.state("sent"))},
  ${nextRetryAt} = ${unlessConsumed(nextRetryAt, after("outcome.next_ms"))},
  ${failReason} = ${unlessConsumed(failReason, "NULL")}${names.set("messageId", "outcome.message_id")}${names.set("sentAt", NOW)}${names.set("lastRetryAt", unlessConsumed(lastRetryAt, before("?")))}${names.changed}
FROM ${tokenSource("next_ms", "delivery_count", "message_id")} AS outcome
WHERE m.${id} = outcome.id
  AND ((${names.isIn(from)} AND ${names.tokenMatches("outcome")})${overtaken})
  AND ${fenceCondition(names)}`;
}

/**
 * A row that a confirmation has overtaken is left to housekeeping. Finds the rows by id first,
 * because DELETE cannot join. If we die before it, the message is sent again with the same
 * identity; right after it, nothing is missing.
 */
function deleteSentText(names: Names, from: From): string {
  const { id } = names.column;
  return `DELETE FROM ${names.table} WHERE ${id} IN (
  SELECT m.${id} FROM ${tokenSource()} AS outcome CROSS JOIN ${names.table} AS m ON m.${id} = outcome.id
  WHERE ${names.isIn(from)} AND ${names.tokenMatches("outcome")} AND ${fenceCondition(names)})`;
}

/**
 * Failures and uncounted returns: pending with a time, or failed. Writes the start of an attempt
 * (retry_delta 1). If we die right after it, nothing is missing.
 */
function settleOtherText(names: Names, from: From): string {
  const { id, state, nextRetryAt, failReason, retryCount, deliveryCount, lastRetryAt } = names.column;
  return `UPDATE ${names.table} AS m
SET ${state} = CASE WHEN outcome.failed = 1 THEN ${names.state("failed")} ELSE ${names.state("pending")} END,
  ${retryCount} = COALESCE(m.${retryCount}, 0) + outcome.retry_delta,
  ${nextRetryAt} = CASE WHEN outcome.failed = 1 THEN ${after("outcome.next_ms")} ELSE ${names.pendingIn("outcome.next_ms")} END,
  ${failReason} = COALESCE(outcome.fail_reason, m.${failReason})${names.set("deliveryCount", `max(COALESCE(m.${deliveryCount}, 0) + outcome.delivery_delta, 0)`)}${names.set("lastRetryAt", `CASE WHEN outcome.retry_delta = 1 THEN ${before("?")} ELSE m.${lastRetryAt} END`)}${names.changed}
FROM ${tokenSource("next_ms", "failed", "retry_delta", "delivery_delta", "fail_reason")} AS outcome
WHERE m.${id} = outcome.id AND ${names.isIn(from)} AND ${names.tokenMatches("outcome")}
  AND ${fenceCondition(names)}`;
}
