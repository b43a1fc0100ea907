/** Why a message is not sent: the first of the relay's rules that holds it back. */

import type { ChangeByHand, Explanation, MessageSummary } from "../../../admin/message-admin.ts";
import { ruleOfReason } from "../../../message/suspension-reason.ts";
import type { KeyQueueRow, RelayStatus, ShardLease, SuspensionRule } from "../../../relay/store.ts";
import { takesTopic } from "../../../runtime/topic-patterns.ts";

export interface ExplainedFacts {
  readonly message: MessageSummary;
  /** The database's clock, ISO 8601 UTC. */
  readonly now: string;
  /** Milliseconds until next_retry_at and deliver_at; null: NULL, or no such column. */
  readonly dueInMs: number | null;
  readonly deliverInMs: number | null;
  readonly shard: number;
  /** Unfinished messages of its ordering key up to it, lowest ids first. */
  readonly keyQueue: readonly KeyQueueRow[];
  readonly front: MessageSummary | undefined;
  readonly leases: readonly ShardLease[];
  readonly relays: readonly RelayStatus[];
  readonly suspensions: readonly SuspensionRule[];
  /** Changes by hand, newest first. */
  readonly changes: readonly ChangeByHand[];
}

/** Id of the message that goes before this one, if any. */
export function frontId({ behindId, id }: MessageSummary, keyQueue: readonly KeyQueueRow[]): string | undefined {
  if (behindId !== undefined) return behindId;
  // A resend is outside its key's order (rule: key-order).
  const own = keyQueue.find((row) => row.id === id);
  if (own?.resend === true) return undefined;
  return keyQueue.find((row) => row.id !== id && !row.resend)?.id;
}

export function explain(facts: ExplainedFacts): Explanation {
  const { message } = facts;
  if (message.archived) return { heldBy: "archived", text: "it is finished, and stands in the archive" };
  if (message.state !== "pending") return explainState(facts);
  return ownTime(facts) ?? keyOrder(facts) ?? suspensionRule(facts) ?? ownerOf(facts) ?? brokerOf(facts) ?? next(facts);
}

function explainState(facts: ExplainedFacts): Explanation {
  const { message } = facts;
  const { failReason, nextRetryAt, retryCount, sentAt } = message;
  switch (message.state) {
    case "sending":
      return sending(facts);
    case "suspended":
      return suspended(facts);
    case "failed": {
      const reason = `failed after ${retryCount} counted attempts: ${failReason ?? "no reason was written"}`;
      if (nextRetryAt === null)
        return { heldBy: "failed", text: `${reason}. Only a person brings it back: rowpost retry` };
      return { heldBy: "failed", text: `${reason}. Tried again at ${nextRetryAt}`, until: nextRetryAt };
    }
    case "consumed":
      return { heldBy: "consumed", text: "its consumer has confirmed it" };
    case "sent": {
      const at = sentAt === null || sentAt === undefined ? "" : ` at ${sentAt}`;
      if (nextRetryAt === null) return { heldBy: "sent", text: `the broker took it${at}` };
      const text = `the broker took it${at}; its confirmation is waited for until ${nextRetryAt}`;
      return { heldBy: "confirmation", text, until: nextRetryAt };
    }
    default: {
      const text = `its state ${JSON.stringify(message.rawState)} is none that the layout knows; a relay makes it failed`;
      return { heldBy: "unknown state", text };
    }
  }
}

function sending(facts: ExplainedFacts): Explanation {
  const { gmtModified } = facts.message;
  const owner = ownerOf(facts);
  if (owner !== undefined) {
    const text = `a relay had it in hand when it was heard of last. Now ${owner.text}`;
    return { ...owner, heldBy: "sending", text, since: gmtModified };
  }
  const relay = labelOf(facts);
  return { heldBy: "sending", text: `relay ${relay} has it in hand since ${gmtModified}`, since: gmtModified, relay };
}

function suspended({ changes, message, suspensions }: ExplainedFacts): Explanation {
  const { failReason, nextRetryAt, updatedBy } = message;
  const end = nextRetryAt === null ? "until it is resumed (rowpost resume)" : `until ${nextRetryAt}`;
  const until = nextRetryAt ?? undefined;
  const rule = ruleOfReason(failReason);
  if (rule !== undefined) {
    const stands = suspensions.some(({ scope, value }) => scope === rule.scope && value === rule.value);
    const lifted = stands ? "" : "; that rule has ended";
    const text = `suspended by the rule on ${scopeText(rule)}: ${rule.words}, ${end}${lifted}`;
    return { heldBy: "suspended", text, until };
  }
  const change = changes.find(({ action }) => action === "suspend");
  if (change !== undefined) {
    const text = `suspended by ${change.author} at ${change.at}: ${change.reason}, ${end}`;
    return { heldBy: "suspended", text, until, since: change.at };
  }
  const who = updatedBy === null || updatedBy === undefined || updatedBy === "" ? "hand" : updatedBy;
  return { heldBy: "suspended", text: `suspended by ${who}, ${end}`, until };
}

function ownTime({ deliverInMs, dueInMs, message }: ExplainedFacts): Explanation | undefined {
  const { behindId, deliverAt, failReason, nextRetryAt, retryCount } = message;
  if (behindId !== undefined || nextRetryAt === null || dueInMs === null || dueInMs <= 0) return undefined;
  const error = ruleOfReason(failReason) === undefined ? failReason : null;
  // Without deliver_at, the time of a message never tried is its delay.
  const isDelay = deliverAt === undefined ? retryCount === 0 && error === null : (deliverInMs ?? 0) > 0;
  const until = isDelay ? (deliverAt ?? nextRetryAt) : nextRetryAt;
  if (isDelay) return { heldBy: "delay", text: `delayed until ${until}`, until };
  const last = error === null ? "" : `. The last error: ${error}`;
  return {
    heldBy: "backoff",
    text: `waits for its next attempt until ${until} (${retryCount} counted so far)${last}`,
    until,
  };
}

function keyOrder({ front, keyQueue, message }: ExplainedFacts): Explanation | undefined {
  const behindId = frontId(message, keyQueue);
  if (behindId === undefined) return undefined;
  const text = `behind message ${behindId} of its ordering key ${JSON.stringify(message.orderingKey ?? "")}`;
  if (front === undefined)
    return { heldBy: "ordering key", text: `${text}, which is gone: it comes back within seconds`, behindId };
  const time = front.nextRetryAt === null || front.behindId !== undefined ? "" : ` until ${front.nextRetryAt}`;
  const reason = front.failReason === null ? "" : `: ${front.failReason}`;
  return { heldBy: "ordering key", text: `${text}, which is ${front.state}${time}${reason}`, behindId };
}

function suspensionRule({ message, suspensions }: ExplainedFacts): Explanation | undefined {
  const values: Readonly<Record<SuspensionRule["scope"], string | null | undefined>> = {
    relay: "*",
    topic: message.topic,
    type: message.type,
    ordering_key: message.orderingKey,
  };
  const rule = suspensions.find(({ scope, value }) => values[scope] === value);
  if (rule === undefined) return undefined;
  const text = `a rule of ${rule.author} on ${scopeText(rule)} holds it: ${rule.reason}`;
  return { heldBy: "suspension rule", text };
}

function scopeText({ scope, value }: { readonly scope: string; readonly value: string }): string {
  return scope === "relay" ? "everything" : `${scope.replace("_", " ")} ${JSON.stringify(value)}`;
}

function ownerOf(facts: ExplainedFacts): Explanation | undefined {
  const { message, now, relays, shard } = facts;
  const alive = relays.filter((relay) => relay.alive);
  if (alive.length === 0) {
    const last = [...relays].sort((left, right) => left.silentMs - right.silentMs)[0];
    if (last === undefined) return { heldBy: "no relay", text: "no relay runs, and none has within the last day" };
    const since = earlier(now, last.silentMs);
    return { heldBy: "no relay", text: `no relay runs; the last sign of life was ${last.label}'s at ${since}`, since };
  }
  const takers = alive.filter((relay) => takes(relay, message));
  const owner = ownerId(facts);
  const names = takers.map(({ label }) => label).join(", ");
  if (takers.length === 0) {
    const topics = alive.map(({ label, report }) => `${label}: ${report?.topics?.join(", ") ?? ""}`).join("; ");
    const text = `no relay that runs takes its topic ${JSON.stringify(message.topic)}; their topics are ${topics}. Start one with a route for it`;
    return { heldBy: "no relay", text };
  }
  if (owner === undefined) {
    const text = `its shard ${shard} has no owner; one of the relays that run (${names}) takes it within seconds`;
    return { heldBy: "shard without owner", text };
  }
  const relay = relays.find((each) => each.owner === owner);
  if (relay?.alive === true) return undefined;
  const silent = relay === undefined ? "that is gone" : `${relay.label}, silent since ${earlier(now, relay.silentMs)}`;
  const text = `its shard ${shard} belongs to a relay ${silent}; another one takes it at the end of the lease at the latest`;
  return { heldBy: "silent owner", text };
}

/** The relay that owns its shard reports that it cannot send it now. */
function brokerOf(facts: ExplainedFacts): Explanation | undefined {
  const { message, now } = facts;
  const relay = labelOf(facts);
  const report = relayOf(facts)?.report;
  const away = report?.brokers.find(
    ({ awayForMs, topics }) => awayForMs !== undefined && (topics === undefined || topics.includes(message.topic)),
  );
  if (away !== undefined) {
    const since = earlier(now, away.awayForMs ?? 0);
    const text = `the broker ${away.name} is away since ${since}: ${away.reason ?? "no reason is known"}. No attempt is counted`;
    return { heldBy: "broker away", text, since, relay };
  }
  const resting = report?.restingTopics.find(({ topic }) => topic === message.topic);
  if (resting === undefined) return undefined;
  const until = earlier(now, -resting.restsForMs);
  const text = `its topic rests until ${until}, then one message finds out: ${resting.reason}`;
  return { heldBy: "topic rests", text, until, relay };
}

function next(facts: ExplainedFacts): Explanation {
  const relay = labelOf(facts);
  const report = relayOf(facts)?.report;
  const isFull = report !== undefined && report.inFlight >= report.windowSize;
  const first = isFull ? `, after some of the ${report.inFlight} messages that it has in hand` : "";
  return { heldBy: "nothing", text: `due now; relay ${relay} takes it${first}`, relay };
}

function takes({ report }: RelayStatus, { topic }: MessageSummary): boolean {
  return report === undefined || takesTopic(report, topic);
}

/** Owner of this shard that takes the topic, preferably a running one. */
function ownerId({ leases, message, relays, shard }: ExplainedFacts): string | undefined {
  const owners = leases.flatMap((lease) => (lease.shard === shard && lease.owner !== undefined ? [lease.owner] : []));
  const takers = relays.filter((relay) => takes(relay, message) && owners.includes(relay.owner));
  const gone = owners.find((owner) => !relays.some((relay) => relay.owner === owner));
  return (takers.find(({ alive }) => alive) ?? takers[0])?.owner ?? gone;
}

function relayOf(facts: ExplainedFacts): RelayStatus | undefined {
  const owner = ownerId(facts);
  return facts.relays.find((relay) => relay.owner === owner);
}

function labelOf(facts: ExplainedFacts): string {
  return relayOf(facts)?.label ?? "";
}

function earlier(iso: string, ms: number): string {
  return new Date(Date.parse(iso) - ms).toISOString();
}
