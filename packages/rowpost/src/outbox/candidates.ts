/**
 * Sorts scanned rows by what may happen to them now. A row that may not be sent must neither be claimed nor take a place in the batch
 * (rule R12); a row that can never be sent is failed with a reason and blocks nobody. Pure but for the ports it asks.
 */

import type { OutgoingMessage } from "../brokers/broker.ts";
import type { InFlightWindow } from "./in-flight-window.ts";
import type { Outlets } from "./outlets.ts";
import { prepareMessage } from "./prepare-message.ts";
import type { RelaySettings } from "./relay-options.ts";
import type { ScannedMessage, SuspensionRule } from "./relay-store.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

/** A row that may be claimed, as far as itself is concerned. */
export interface Candidate {
  readonly message: ScannedMessage;
  readonly outgoing: OutgoingMessage;
}

/** Scanned rows by fate. Rows in no list are under way already. */
export interface SortedRows {
  readonly candidates: readonly Candidate[];
  /** Recovered so often that each is sent alone (rule R14). */
  readonly suspects: readonly Candidate[];
  readonly broken: readonly { readonly message: ScannedMessage; readonly reason: string }[];
  readonly suspended: ReadonlyMap<SuspensionRule, readonly ScannedMessage[]>;
  /** Their topic rests. */
  readonly resting: readonly ScannedMessage[];
  /** Their broker, one of several, takes nothing now. */
  readonly stopped: readonly ScannedMessage[];
  /** Wait for their turn: key busy, shard not to be claimed from. Not parked: they go soon. */
  readonly passedOver: number;
}

export interface SortRequest {
  readonly rows: readonly ScannedMessage[];
  readonly window: Pick<InFlightWindow, "excludes" | "keyBusy">;
  readonly breaker: Pick<TopicBreaker, "allowance">;
  readonly outlets: Pick<Outlets, "isStopped">;
  readonly suspensions: readonly SuspensionRule[];
  readonly settings: Pick<RelaySettings, "suspectAfter" | "failAfter">;
  /** The shard is held, is not being given away, and has enough lease left. */
  readonly mayClaim: (shard: number) => boolean;
  /** The table counts claims; without delivery_count nothing is known of recoveries. */
  readonly countsClaims: boolean;
  /** The table says what a body is; without content_type what parses is JSON and the rest is text. */
  readonly hasContentType: boolean;
}

/** Sorts the rows of one scan. */
export function sortRows(request: SortRequest): SortedRows {
  const { window, settings, suspensions } = request;
  const candidates: Candidate[] = [];
  const broken: { message: ScannedMessage; reason: string }[] = [];
  const suspended = new Map<SuspensionRule, ScannedMessage[]>();
  const resting: ScannedMessage[] = [];
  const stopped: ScannedMessage[] = [];
  const suspects: Candidate[] = [];
  let passedOver = 0;
  for (const message of request.rows) {
    if (window.excludes(message.id)) continue;
    if (!request.mayClaim(message.shard) || (message.orderingKey !== null && window.keyBusy(message.orderingKey))) {
      passedOver += 1;
      continue;
    }
    const rule = suspensions.length === 0 ? undefined : ruleFor(message, suspensions);
    if (rule !== undefined) {
      const rows = suspended.get(rule);
      if (rows === undefined) suspended.set(rule, [message]);
      else rows.push(message);
      continue;
    }
    if (request.outlets.isStopped(message.topic)) {
      stopped.push(message);
      continue;
    }
    const recoveries = request.countsClaims ? message.deliveryCount - message.retryCount : 0;
    const prepared = prepareMessage(message, request);
    if ("broken" in prepared) broken.push({ message, reason: prepared.broken });
    else if (recoveries >= settings.failAfter) broken.push({ message, reason: tooManyRecoveries(recoveries) });
    else if (request.breaker.allowance(message.topic) <= 0) resting.push(message);
    else (recoveries < settings.suspectAfter ? candidates : suspects).push({ message, outgoing: prepared.outgoing });
  }
  return { candidates, suspects, broken, suspended, resting, stopped, passedOver };
}

/**
 * Of messages that could go now, in id order, those that their topics' breakers let through; the rest waits for what they find out. Asked after the
 * order of keys is known: a probe given to a message that has to wait behind its key would find out nothing, and the topic would rest for ever.
 */
export function withinAllowance(
  ready: readonly Candidate[],
  breaker: Pick<TopicBreaker, "allowance">,
): { readonly go: readonly Candidate[]; readonly resting: readonly ScannedMessage[] } {
  const allowances = new Map<string, number>();
  const go: Candidate[] = [];
  const resting: ScannedMessage[] = [];
  for (const candidate of ready) {
    const { topic } = candidate.message;
    const left = allowances.get(topic) ?? breaker.allowance(topic);
    allowances.set(topic, left - 1);
    if (left > 0) go.push(candidate);
    else resting.push(candidate.message);
  }
  return { go, resting };
}

function tooManyRecoveries(recoveries: number): string {
  return (
    `CRASH_LOOP: claimed ${recoveries} times without an outcome, and the relay died or lost its lease each time; ` +
    "look at its log from those times before you retry this message"
  );
}

function ruleFor(message: ScannedMessage, rules: readonly SuspensionRule[]): SuspensionRule | undefined {
  return rules.find(
    (rule) =>
      (rule.scope === "topic" && rule.value === message.topic) ||
      (rule.scope === "type" && rule.value === message.type) ||
      (rule.scope === "ordering_key" && rule.value === message.orderingKey),
  );
}
