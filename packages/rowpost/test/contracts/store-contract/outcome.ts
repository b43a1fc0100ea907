/** Outcomes as a relay hands them to settle. */
import type { Outcome, RowToken } from "../../../src/relay/store.ts";
import type { RowValues } from "./table.ts";

/** A row as a claim has left it. */
export const CLAIMED: RowValues = { state: "sending", deliveryCount: 1, lockVersion: 1 };

/** The broker has it. */
export function sent(token: RowToken, changes: Partial<Outcome> = {}): Outcome {
  return {
    ...token,
    toState: "sent",
    messageId: `receipt-${token.id}`,
    retryDelta: 0,
    deliveryDelta: 0,
    nextRetryInMs: null,
    failReason: null,
    ...changes,
  };
}

/** An attempt that failed and may be repeated: a minute later, unless the changes say otherwise. */
export function retried(token: RowToken, changes: Partial<Outcome> = {}): Outcome {
  return {
    ...sent(token),
    toState: "pending",
    messageId: null,
    retryDelta: 1,
    nextRetryInMs: 60_000,
    failReason: "BUSY: the broker is busy",
    ...changes,
  };
}

/** Given back without an attempt. */
export function returned(token: RowToken, changes: Partial<Outcome> = {}): Outcome {
  return { ...retried(token), retryDelta: 0, deliveryDelta: -1, nextRetryInMs: null, failReason: null, ...changes };
}

/** Given up. */
export function failed(token: RowToken, changes: Partial<Outcome> = {}): Outcome {
  return { ...retried(token), toState: "failed", nextRetryInMs: null, failReason: "REFUSED: too large", ...changes };
}
