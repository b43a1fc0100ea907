/** One publish call: plans each topic, sends its lanes, divides failed batches, and gives every message its result. */

import { type AbortScope, createAbortScope, orAborted } from "../../runtime/abort-scope.ts";
import { byTopic } from "../../runtime/by-topic.ts";
import type { RequestSlots } from "../../runtime/request-slots.ts";
import { ABORTED, BEHIND, type OutgoingMessage, type PublishResult } from "../broker.ts";
import type { CallResult } from "./connection.ts";
import { type Failure, failureOfCall, failureOfStatus, type RocketmqStatus } from "./failures.ts";
import { type Indexed, type Item, type Lane, type Place, planTopic } from "./plan.ts";
import type { Routes } from "./routes.ts";
import { encodeSendRequest } from "./wire.ts";

/** What publishing needs of the rest of the adapter. */
export interface Publishing {
  readonly routes: Routes;
  readonly slots: RequestSlots;
  /** One SendMessage with an encoded request. Never rejects. */
  readonly send: (request: Buffer, scope: AbortScope) => Promise<CallResult>;
  /** The publish calls that run; `close` aborts them. */
  readonly running: Set<AbortScope>;
  readonly namespace: string;
  readonly bornHost: string;
  readonly batchSize: number;
  readonly refuseUnordered: boolean;
  /** Largest body that the server said it takes; undefined while it has not said so. */
  readonly maxBodyBytes: () => number | undefined;
  /** Called when keyed messages went to a topic that keeps no order. */
  readonly onUnordered: (topic: string, accepts: ReadonlySet<string>) => void;
}

/**
 * Most bytes of a request with several messages. The server refuses about 4 MB; from 512 KB on a request is bound by its bytes, and smaller
 * ones share the connection better.
 */
const MAX_REQUEST_BYTES = 1_048_576;

/** State of one publish call. */
interface Run {
  readonly publishing: Publishing;
  readonly scope: AbortScope;
  readonly results: (PublishResult | undefined)[];
  /** The server cannot be reached: what has not started yet is not tried one by one. */
  offline: Failure | undefined;
}

/** State of one topic within it. */
interface TopicRun {
  readonly run: Run;
  readonly topic: string;
  /** Ordering keys of which a message failed, with its index: those behind it are not handed over any more. */
  readonly blocked: Map<string, number>;
  /** The topic is throttled or away: as above, for this topic. */
  away: Failure | undefined;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<PublishResult[]> {
  const scope = createAbortScope(signal);
  publishing.running.add(scope);
  const run: Run = {
    publishing,
    scope,
    results: new Array<PublishResult | undefined>(batch.length),
    offline: undefined,
  };
  try {
    await Promise.all([...byTopic(batch)].map(([topic, messages]) => publishTopic(run, topic, messages)));
  } finally {
    scope.end();
    publishing.running.delete(scope);
  }
  return batch.map((_, index) => run.results[index] ?? ABORTED);
}

async function publishTopic(run: Run, topic: string, messages: readonly Indexed[]): Promise<void> {
  const { publishing, scope } = run;
  const topicRun: TopicRun = { run, topic, blocked: new Map(), away: undefined };
  const found = publishing.routes.find(topic);
  const answer = found instanceof Promise ? await orAborted(found, scope) : found;
  if (answer === undefined) return; // aborted: nothing was started
  if (answer.route === undefined) {
    fail(topicRun, messages, answer.failure);
    return;
  }
  const { accepts } = answer.route;
  const maxBodyBytes = publishing.maxBodyBytes();
  const plan = planTopic(messages, {
    topic,
    accepts,
    batchSize: publishing.batchSize,
    maxRequestBytes: Math.min(MAX_REQUEST_BYTES, maxBodyBytes ?? MAX_REQUEST_BYTES),
    maxBodyBytes,
    refuseUnordered: publishing.refuseUnordered,
    nowMs: Date.now(),
  });
  if (plan.unordered > 0) publishing.onUnordered(topic, accepts);
  // What is refused holds back what is behind it, but gets its result last: a message before it may still fail and come first.
  for (const { item } of plan.refused) block(topicRun, item);
  await Promise.all(plan.lanes.map((lane) => runLane(topicRun, lane)));
  for (const { item, failure } of plan.refused) fail(topicRun, [item], failure);
}

async function runLane(topicRun: TopicRun, lane: Lane): Promise<void> {
  for (const request of lane) await sendItems(topicRun, request);
}

/** Sends the items that may still go; after a failure that can lie in one of them, each half on its own. */
async function sendItems(topicRun: TopicRun, items: readonly Item[]): Promise<void> {
  const open = items.filter((item) => stillOpen(topicRun, item));
  const { run } = topicRun;
  const { publishing, scope } = run;
  if (open.length === 0 || scope.aborted) return;
  const bytes = open.reduce((sum, item) => sum + item.bytes, 0);
  if (!(await publishing.slots.acquire(bytes, scope))) return;
  let failure: Failure | undefined;
  try {
    // What became known while these were waiting for their turn.
    const known = run.offline ?? topicRun.away;
    failure = known ?? (await sendOnce(topicRun, open));
  } finally {
    publishing.slots.release(bytes);
  }
  if (failure === undefined) {
    for (const item of open) run.results[item.index] = { status: "sent", messageId: item.wire.messageId };
  } else if (failure.divisible && open.length > 1) {
    const middle = open.length >> 1;
    await sendItems(topicRun, open.slice(0, middle));
    await sendItems(topicRun, open.slice(middle));
  } else {
    fail(topicRun, open, failure.routeIsWrong ? publishing.routes.contradicted(topicRun.topic, failure) : failure);
  }
}

async function sendOnce(topicRun: TopicRun, items: readonly Item[]): Promise<Failure | undefined> {
  const { publishing, scope } = topicRun.run;
  const request = encodeSendRequest(
    { namespace: publishing.namespace, topic: topicRun.topic, bornHost: publishing.bornHost, bornAtMs: Date.now() },
    items.map((item) => item.wire),
  );
  const result = await publishing.send(request, scope);
  if (!result.ok) return failureOfCall(result);
  const answer = result.response as SendAnswer;
  // One entry stands for a whole batch today; every one that is there must be good.
  return failureOfStatus(answer.status) ?? firstFailure(answer.entries ?? []);
}

interface SendAnswer {
  readonly status?: RocketmqStatus;
  readonly entries?: readonly { readonly status?: RocketmqStatus }[];
}

function firstFailure(entries: readonly { readonly status?: RocketmqStatus }[]): Failure | undefined {
  for (const { status } of entries) {
    const failure = status === undefined ? undefined : failureOfStatus(status);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/** False, with its result, for a message behind a failed one of its key, or of a topic or server that is away. */
function stillOpen(topicRun: TopicRun, item: Item): boolean {
  const known = topicRun.run.offline ?? topicRun.away;
  if (known !== undefined) settle(topicRun, item, known);
  else if (isBehind(topicRun, item)) topicRun.run.results[item.index] = BEHIND;
  else return true;
  return false;
}

function fail(topicRun: TopicRun, places: readonly Place[], failure: Failure): void {
  const { run } = topicRun;
  if (run.scope.aborted && failure.scope === "connection") return; // never handed over: not started
  if (failure.scope === "connection") {
    run.offline = failure;
    run.publishing.routes.expireAll();
  }
  if (failure.scope === "destination") topicRun.away = failure;
  for (const place of places) settle(topicRun, place, failure);
}

/** Gives a message its failure; or `notStarted` when an earlier one of its key has failed and this one was not handed over. */
function settle(topicRun: TopicRun, place: Place, failure: Failure): void {
  if (failure.scope !== "unknown" && isBehind(topicRun, place)) {
    topicRun.run.results[place.index] = BEHIND;
    return;
  }
  block(topicRun, place);
  topicRun.run.results[place.index] = {
    status: "failed",
    scope: failure.scope,
    retriable: failure.retriable,
    code: failure.code,
    reason: failure.reason,
    retryAfterMs: failure.retryAfterMs,
  };
}

function block({ blocked }: TopicRun, { index, orderingKey }: Place): void {
  if (orderingKey !== undefined) blocked.set(orderingKey, Math.min(index, blocked.get(orderingKey) ?? index));
}

function isBehind({ blocked }: TopicRun, { index, orderingKey }: Place): boolean {
  return orderingKey !== undefined && index > (blocked.get(orderingKey) ?? index);
}
