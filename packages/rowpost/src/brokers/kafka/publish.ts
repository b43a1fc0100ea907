/** One publish call: plans each topic, sends its lanes, divides batches that were refused, and gives every message its result. */

import { orAborted } from "../../runtime/abort-scope.ts";
import { byTopic } from "../../runtime/by-topic.ts";
import { ABORTED, BEHIND, type OutgoingMessage, type PublishResult } from "../broker.ts";
import { receiptOf } from "./carry.ts";
import type { TopicDescription } from "./driver.ts";
import type { Failure } from "./failures.ts";
import { groupLanes, type Indexed, type Item, type Lane, type Place, planLanes } from "./plan.ts";
import { isFailure, type SendOutcome, type Sessions } from "./sessions.ts";
import type { Topics } from "./topics.ts";

/** What publishing needs of the rest of the adapter. */
export interface Publishing {
  readonly sessions: Sessions;
  readonly topics: Topics;
}

/** Most bytes of one request, of several partitions. */
const MAX_REQUEST_BYTES = 8_000_000;
/** A leader that moved is elected within tens of milliseconds; after all of these waits the topic is away. */
const MOVED_WAITS_MS: readonly number[] = [50, 100, 200, 400];

/** State of one publish call. */
interface Run {
  readonly publishing: Publishing;
  readonly signal: AbortSignal;
  readonly results: (PublishResult | undefined)[];
  /** The cluster cannot be reached: what has not started yet is not tried any more. */
  offline: Failure | undefined;
  /** A connection broke in this call: what is behind it goes out with the next call, which tries the connection first. */
  broken: boolean;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<PublishResult[]> {
  const results = new Array<PublishResult | undefined>(batch.length);
  const run: Run = { publishing, signal, results, offline: undefined, broken: false };
  await Promise.all([...byTopic(batch)].map(([topic, messages]) => publishTopic(run, topic, messages)));
  const rest = run.broken && !signal.aborted ? BROKEN : ABORTED;
  return batch.map((_, index) => results[index] ?? rest);
}

/** State of one topic within a publish call. */
interface TopicRun {
  readonly run: Run;
  readonly topic: string;
  /** Ordering keys of which a message failed, with its index: those behind it are not handed over any more. */
  readonly blocked: Map<string, number>;
  /** The topic is away. */
  away: Failure | undefined;
}

async function publishTopic(run: Run, topic: string, messages: readonly Indexed[]): Promise<void> {
  const topicRun: TopicRun = { run, topic, blocked: new Map(), away: undefined };
  const description = await look(topicRun);
  if (description === undefined) return; // aborted: nothing was started
  if (isFailure(description)) {
    for (const place of messages) settle(topicRun, place, description);
    return;
  }
  const session = await run.publishing.sessions.get(run.signal);
  if (session === undefined) return;
  if (isFailure(session)) {
    for (const place of messages) settle(topicRun, place, session);
    return;
  }
  const lanes = planLanes(messages, description.leaders);
  const groups = groupLanes(lanes, description.leaders, session.combines);
  await Promise.all(groups.map((group) => runGroup(topicRun, group)));
}

/** The topic as the cluster describes it; undefined when the call was aborted first. */
async function look({ run, topic }: TopicRun): Promise<TopicDescription | Failure | undefined> {
  const found = run.publishing.topics.find(topic);
  return found instanceof Promise ? await orAborted(found, run.signal) : found;
}

/** Sends the next batch of each lane, until all lanes are empty. */
async function runGroup(topicRun: TopicRun, lanes: readonly Lane[]): Promise<void> {
  const { run, topic } = topicRun;
  // Of this group: others wait at the same time, for leaders of their own.
  const waits = MOVED_WAITS_MS.values();
  for (;;) {
    const round = nextRound(topicRun, lanes);
    if (round.length === 0 || run.signal.aborted || run.broken) return;
    const session = await run.publishing.sessions.get(run.signal);
    if (session === undefined) return;
    let outcomes: readonly SendOutcome[];
    if (isFailure(session)) {
      run.offline = session;
      outcomes = round.map(() => ({ failure: session }));
    } else {
      const batches = round.map(({ lane, items }) => ({
        partition: lane.partition,
        records: items.map(({ record }) => record),
      }));
      outcomes = await session.send(topic, batches, run.signal);
    }
    for (const [index, outcome] of outcomes.entries()) {
      const part = round[index];
      if (part !== undefined) conclude(topicRun, part, outcome);
    }
    const moved = round.filter((_, index) => isStale(outcomes[index]));
    if (moved.length > 0) await followLeader(topicRun, moved, outcomes.find(isStale), waits.next().value);
  }
}

interface Part {
  readonly lane: Lane;
  readonly items: Item[];
}

/** Takes the next batch out of each lane, without the messages that may not go any more. */
function nextRound(topicRun: TopicRun, lanes: readonly Lane[]): Part[] {
  const round: Part[] = [];
  let bytes = 0;
  for (const lane of lanes) {
    let items: Item[] = [];
    while (items.length === 0 && lane.batches.length > 0 && (bytes === 0 || bytes < MAX_REQUEST_BYTES)) {
      items = (lane.batches.shift() ?? []).filter((item) => stillOpen(topicRun, item));
    }
    if (items.length === 0) continue;
    bytes += items.reduce((sum, { record }) => sum + record.bytes, 0);
    round.push({ lane, items });
  }
  return round;
}

function conclude(topicRun: TopicRun, { lane, items }: Part, outcome: SendOutcome): void {
  const { run, topic } = topicRun;
  if ("baseOffset" in outcome) {
    for (const [index, { index: place }] of items.entries()) {
      const messageId = receiptOf(topic, lane.partition, outcome.baseOffset + BigInt(index));
      run.results[place] = { status: "sent", messageId };
    }
    return;
  }
  const { failure } = outcome;
  if (failure.stale) {
    lane.batches.unshift(items);
  } else if (failure.divisible && items.length > 1) {
    const middle = items.length >> 1;
    lane.batches.unshift(items.slice(0, middle), items.slice(middle));
  } else {
    if (failure.scope === "connection") run.offline = failure;
    if (failure.scope === "destination") topicRun.away = failure;
    if (failure.scope === "unknown" && failure.endsSession) run.broken = true;
    for (const item of items) settle(topicRun, item, failure);
  }
}

/** Looks where the partitions are now, after a while; when they are nowhere, or have moved too often, their messages fail. */
async function followLeader(
  topicRun: TopicRun,
  moved: readonly Part[],
  outcome: SendOutcome | undefined,
  waitMs: number | undefined,
): Promise<void> {
  const { run, topic } = topicRun;
  run.publishing.topics.forget(topic);
  const description = await look(topicRun);
  if (description === undefined) return;
  const failure = outcome !== undefined && "failure" in outcome ? outcome.failure : undefined;
  if (isFailure(description)) {
    if (description.scope === "connection") run.offline = description;
    giveUp(topicRun, moved, description);
  } else if (waitMs === undefined && failure !== undefined) {
    giveUp(topicRun, moved, { ...failure, scope: "destination" });
  } else {
    await orAborted(new Promise((resolve) => setTimeout(resolve, waitMs)), run.signal);
  }
}

function giveUp(topicRun: TopicRun, moved: readonly Part[], failure: Failure): void {
  for (const { lane } of moved) {
    for (const item of lane.batches.splice(0).flat()) settle(topicRun, item, failure);
  }
}

function isStale(outcome: SendOutcome | undefined): boolean {
  return outcome !== undefined && "failure" in outcome && outcome.failure.stale;
}

/** False, with its result, for a message behind a failed one of its key, or of a topic or cluster that is away. */
function stillOpen(topicRun: TopicRun, item: Item): boolean {
  const known = topicRun.run.offline ?? topicRun.away;
  if (isBehind(topicRun, item)) topicRun.run.results[item.index] = BEHIND;
  else if (known !== undefined) settle(topicRun, item, known);
  else return true;
  return false;
}

/** Gives a message its failure; or `notStarted` when an earlier one of its key has failed and this one was not handed over. */
function settle(topicRun: TopicRun, place: Place, failure: Failure): void {
  const { results } = topicRun.run;
  const { blocked } = topicRun;
  const { index, orderingKey } = place;
  // Unknown is what was handed over, in one request with those before it.
  if (failure.scope !== "unknown" && isBehind(topicRun, place)) {
    results[index] = BEHIND;
    return;
  }
  if (orderingKey !== undefined) blocked.set(orderingKey, Math.min(index, blocked.get(orderingKey) ?? index));
  const { scope, retriable, code, reason, retryAfterMs } = failure;
  results[index] = { status: "failed", scope, retriable, code, reason, retryAfterMs };
}

function isBehind({ blocked }: TopicRun, { index, orderingKey }: Place): boolean {
  return orderingKey !== undefined && index > (blocked.get(orderingKey) ?? index);
}

const BROKEN: PublishResult = { status: "notStarted", reason: "the connection broke before its turn" };
