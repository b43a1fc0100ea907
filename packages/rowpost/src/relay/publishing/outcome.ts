/** Translates a publish result into transition, counters and next look. Pure. */
import type { PublishResult } from "../../brokers/broker.ts";
import type { RetryPolicy } from "../../message/message-type.ts";
import { backoffMs } from "../../runtime/backoff.ts";
import type { RelaySettings } from "../options.ts";
import { claimedToken } from "../row-token.ts";
import type { Outcome, RowToken, ScannedMessage } from "../store.ts";

/** Delay of a message returned without an attempt. */
export interface ReturnDelay {
  readonly destinationRestMs: number;
}

export function outcomeOf(
  message: ScannedMessage,
  result: PublishResult,
  settings: Pick<RelaySettings, "policyOf" | "confirmOf" | "sendingMark">,
  delay: ReturnDelay,
  random: () => number = Math.random,
): Outcome {
  const token = claimedToken(message, settings.sendingMark);
  if (result.status === "sent") {
    const withinMs = settings.confirmOf(message.type)?.withinMs ?? null;
    return outcome(token, { toState: "sent", messageId: result.messageId, nextRetryInMs: withinMs, failReason: null });
  }
  if (result.status === "notStarted") return returned(token, { inMs: null, failReason: null }, settings.sendingMark);
  if (result.scope === "connection") return returned(token, { inMs: null, failReason: null }, settings.sendingMark);
  if (result.scope === "destination") {
    // The broker's text explains why the topic grows. Few rows get it, since one message probes a
    // resting topic.
    const failReason = `${result.code}: ${result.reason}`;
    return returned(
      token,
      { inMs: brokersWait(result.retryAfterMs) ?? wholeMs(delay.destinationRestMs), failReason },
      settings.sendingMark,
    );
  }
  return failure(message, token, result, settings, random);
}

/**
 * The slow tier: a failed message is retried every few hours for some days (in ms), then only by a
 * person (null).
 */
export function slowRetryInMs(policy: RetryPolicy, ageMs: number): number | null {
  return policy.slowRetryEveryMs > 0 && ageMs < policy.slowRetryForMs ? policy.slowRetryEveryMs : null;
}

function failure(
  message: ScannedMessage,
  token: RowToken,
  result: {
    readonly scope: string;
    readonly retriable: boolean;
    readonly code: string;
    readonly reason: string;
    readonly retryAfterMs?: number | undefined;
  },
  settings: Pick<RelaySettings, "policyOf">,
  random: () => number,
): Outcome {
  const policy = settings.policyOf(message.type);
  const attempts = message.retryCount + 1;
  // Recoveries are delivery_count minus retry_count. An outcome clears them; otherwise a few
  // crashes over a long life would fail the message (rule: crash-counting).
  const counted = { retryDelta: 1, deliveryDelta: attempts - token.deliveryCount } as const;
  const failReason = `${result.code}: ${result.reason}`;
  const mendable = result.retriable || result.scope === "unknown";
  if (mendable && attempts < policy.maxAttempts) {
    const wait =
      brokersWait(result.retryAfterMs) ??
      backoffMs({ attempt: attempts, baseMs: policy.baseMs, factor: policy.factor, maxMs: policy.maxMs }, random);
    return outcome(token, { toState: "pending", ...counted, nextRetryInMs: wait, failReason });
  }
  const slow = mendable ? slowRetryInMs(policy, message.waitingMs) : null;
  return outcome(token, { toState: "failed", ...counted, nextRetryInMs: slow, failReason });
}

/** Without a sending mark the claim counted nothing. */
function returned(
  token: RowToken,
  { inMs, failReason }: { readonly inMs: number | null; readonly failReason: string | null },
  sendingMark: "on" | "off",
): Outcome {
  return outcome(token, {
    toState: "pending",
    deliveryDelta: sendingMark === "on" ? -1 : 0,
    nextRetryInMs: inMs,
    failReason,
  });
}

/** Longest postponement by a broker. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

function brokersWait(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : wholeMs(Math.min(ms, LONGEST_WAIT_MS));
}

/** Statements take whole milliseconds. */
function wholeMs(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.ceil(Math.max(ms, 0));
}

function outcome(token: RowToken, change: Partial<Outcome> & Pick<Outcome, "toState">): Outcome {
  return {
    id: token.id,
    shard: token.shard,
    deliveryCount: token.deliveryCount,
    lockVersion: token.lockVersion,
    identityHash: token.identityHash,
    toState: change.toState,
    messageId: change.messageId ?? null,
    retryDelta: change.retryDelta ?? 0,
    deliveryDelta: change.deliveryDelta ?? 0,
    nextRetryInMs: change.nextRetryInMs ?? null,
    failReason: change.failReason ?? null,
  };
}
