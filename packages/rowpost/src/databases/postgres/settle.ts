/**
 * Outcomes of a batch. Fenced (rule: takeover-fence, see `fenceClause`) and bound to one claim
 * (rule: claim-token).
 */
import type { Outcome } from "../../relay/store.ts";
import { inIdOrder } from "../../runtime/compare-ids.ts";
import type { RelayStatements } from "../sql/statements.ts";
import {
  after,
  fenceClause,
  fenceParams,
  type Names,
  NOW,
  numberArray,
  textArray,
  tokenParams,
  tokenSource,
} from "./names.ts";

type From = "sending" | "pending";

export function settleStatements(names: Names): Pick<RelayStatements, "settleSent" | "settleOther" | "deleteSent"> {
  const sent = { sending: settleSentText(names, "sending"), pending: settleSentText(names, "pending") };
  const deleted = { sending: deleteSentText(names, "sending"), pending: deleteSentText(names, "pending") };
  const other = { sending: settleOtherText(names, "sending"), pending: settleOtherText(names, "pending") };
  // An unused parameter has no type and is refused.
  const elapsed = (elapsedMs: number): readonly number[] => (names.column.lastRetryAt === undefined ? [] : [elapsedMs]);
  return {
    settleSent({ fence, outcomes, elapsedMs, from }) {
      const rows = inIdOrder(outcomes);
      return {
        name: "settleSent",
        text: sent[from],
        params: [
          ...fenceParams(fence, rows),
          ...tokenParams(rows),
          numberArray(rows.map((row) => row.nextRetryInMs)),
          numberArray(rows.map((row) => row.deliveryCount)),
          textArray(rows.map((row) => row.messageId)),
          ...elapsed(elapsedMs),
        ],
      };
    },
    settleOther({ fence, outcomes, elapsedMs, from }) {
      const rows = inIdOrder(outcomes);
      return {
        name: "settleOther",
        text: other[from],
        params: [
          ...fenceParams(fence, rows),
          ...tokenParams(rows),
          numberArray(rows.map((row) => row.nextRetryInMs)),
          numberArray(rows.map((row) => (row.toState === "failed" ? 1 : 0))),
          numberArray(rows.map((row) => row.retryDelta)),
          numberArray(rows.map((row) => row.deliveryDelta)),
          textArray(rows.map((row: Outcome) => row.failReason)),
          ...elapsed(elapsedMs),
        ],
      };
    },
    deleteSent: ({ fence, rows, from }) => ({
      name: "deleteSent",
      text: deleted[from],
      params: [...fenceParams(fence, rows), ...tokenParams(inIdOrder(rows))],
    }),
  };
}

/** Start of the attempt. Not written by the claim, which writes fixed-size columns only. */
function startedAt(place: string): string {
  return `${NOW} - ${place}::bigint * interval '1 millisecond'`;
}

/**
 * A row that a confirmation overtook into `consumed` only gets its receipt; its lock_version has
 * moved, so delivery_count identifies the claim. Locks the rows in the given order, after the lease
 * rows. If we die right after it, nothing is missing.
 */
function settleSentText(names: Names, from: From): string {
  const { id, state, nextRetryAt, failReason, deliveryCount, messageId } = names.column;
  const consumed = `m.${state} = ${names.state("consumed")}`;
  const unlessConsumed = (column: string | undefined, expression: string): string =>
    `CASE WHEN ${consumed} THEN m.${column} ELSE ${expression} END`;
  const sameClaim = deliveryCount === undefined ? "" : ` AND m.${deliveryCount} = outcome.delivery_count`;
  const overtaken =
    messageId === undefined
      ? ""
      : `\n    OR (${consumed} AND m.${messageId} IS NULL${sameClaim} AND ${names.isSameMessage("outcome")})`;
  return `${fenceClause(names)}
UPDATE ${names.table} m
SET ${state} = ${unlessConsumed(state, names.state("sent"))},
  ${nextRetryAt} = ${unlessConsumed(nextRetryAt, after("outcome.next_ms"))},
  ${failReason} = ${unlessConsumed(failReason, "NULL")}${names.set("messageId", "outcome.message_id")}${names.set("sentAt", NOW)}${names.set("lastRetryAt", unlessConsumed(names.column.lastRetryAt, startedAt("$11")))}${names.changed}
FROM ${tokenSource("outcome", { next_ms: "$8::bigint[]", delivery_count: "$9::bigint[]", message_id: "$10::text[]" })}, fence
WHERE m.${id} = outcome.id AND fence.shard = outcome.shard
  AND ((m.${state} = ${names.state(from)} AND ${names.tokenMatches("outcome")})${overtaken})`;
}

/**
 * A row that a confirmation has overtaken is left to housekeeping. Locks like the settle of sent
 * rows. If we die before it, the message is sent again with the same identity; right after it,
 * nothing is missing.
 */
function deleteSentText(names: Names, from: From): string {
  const { id, state } = names.column;
  return `${fenceClause(names)}
DELETE FROM ${names.table} m
USING ${tokenSource("outcome")}, fence
WHERE m.${id} = outcome.id AND fence.shard = outcome.shard
  AND m.${state} = ${names.state(from)} AND ${names.tokenMatches("outcome")}`;
}

/**
 * Failures and uncounted returns: pending with a time, or failed. Writes the start of an attempt
 * (retry_delta 1). Locks like the settle of sent rows. If we die right after it, nothing is
 * missing.
 */
function settleOtherText(names: Names, from: From): string {
  const { id, state, nextRetryAt, failReason, retryCount, deliveryCount, lastRetryAt } = names.column;
  return `${fenceClause(names)}
UPDATE ${names.table} m
SET ${state} = CASE WHEN outcome.failed = 1 THEN ${names.state("failed")} ELSE ${names.state("pending")} END,
  ${retryCount} = COALESCE(m.${retryCount}, 0) + outcome.retry_delta,
  ${nextRetryAt} = CASE WHEN outcome.failed = 1 THEN ${after("outcome.next_ms")} ELSE ${names.pendingIn("outcome.next_ms")} END,
  ${failReason} = COALESCE(outcome.fail_reason, m.${failReason})${names.set("deliveryCount", `GREATEST(COALESCE(m.${deliveryCount}, 0) + outcome.delivery_delta, 0)`)}${names.set("lastRetryAt", `CASE WHEN outcome.retry_delta = 1 THEN ${startedAt("$13")} ELSE m.${lastRetryAt} END`)}${names.changed}
FROM ${tokenSource("outcome", {
    next_ms: "$8::bigint[]",
    failed: "$9::integer[]",
    retry_delta: "$10::integer[]",
    delivery_delta: "$11::bigint[]",
    fail_reason: "$12::text[]",
  })}, fence
WHERE m.${id} = outcome.id AND fence.shard = outcome.shard
  AND m.${state} = ${names.state(from)} AND ${names.tokenMatches("outcome")}`;
}
