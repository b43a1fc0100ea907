import type { OutgoingMessage, PublishNotStarted, PublishResult } from "../broker.ts";
import { type AbortScope, orAborted } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { type Call, createCall, type Load } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { type PlacedMessage, startRequests } from "../publishing/lanes.ts";
import { ABORTED } from "../publishing/results.ts";
import type { Window } from "../publishing/window.ts";
import type { Routes } from "../rocketmq/routes.ts";
import { type Failure, messageFailure, RETRY_AFTER_MS } from "../rocketmq/rules.ts";
import { encodeBatch, sendFields } from "./encode.ts";
import { failureOfAnswer, failureOfSilence, isStored } from "./failures.ts";
import type { Frame, Request } from "./frames.ts";
import type { Link } from "./link.ts";
import type { Settings } from "./options.ts";
import { type Item, planTopic } from "./plan.ts";
import type { Primaries } from "./primaries.ts";
import type { Queue, TopicRoute } from "./topic-route.ts";

export interface Publishing {
  readonly settings: Settings;
  readonly routes: Routes<TopicRoute>;
  readonly primaries: Primaries;
  readonly window: Window;
  readonly turns: { next: number };
}

const SEND_MESSAGE_V2 = 310;
const SEND_BATCH_MESSAGE = 320;

interface Destination {
  readonly topic: string;
  readonly route: TopicRoute;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const destinations = new Map<string, Destination>();
  const call = createCall<Item>({
    count: batch.length,
    scope,
    window: publishing.window,
    // No `leave`: only the end of a request shows whether it was written.
    carrier: (own) => ({
      hand(load) {
        const destination = destinations.get(load.destination);
        if (destination !== undefined) own.settleBy(load, send(publishing, destination, load, scope));
        return undefined;
      },
    }),
  });
  await Promise.all(
    [...byTopic(batch)].map(([topic, messages]) =>
      startTopic(publishing, call, { topic, messages, scope, begin: (route) => destinations.set(topic, route) }),
    ),
  );
  return await call.done;
}

interface TopicPart {
  readonly topic: string;
  readonly messages: readonly PlacedMessage[];
  readonly scope: AbortScope;
  readonly begin: (destination: Destination) => void;
}

async function startTopic(publishing: Publishing, call: Call<Item>, part: TopicPart): Promise<void> {
  const { routes, settings } = publishing;
  const { topic, messages, scope } = part;
  const full = topicOf(topic, settings.namespace);
  const found = typeof full === "string" ? routes.find(full) : { failure: full };
  const answer = found instanceof Promise ? await orAborted(found, scope) : found;
  if (answer === undefined) return;
  if (answer.failure !== undefined) {
    const failure = away(answer.failure, publishing);
    if (failure.scope === "connection") {
      routes.expireAll();
      call.breakOff(failure);
    }
    for (const placed of messages) call.refuse(placed, topic, failure);
    return;
  }
  const { route } = answer;
  const { batchSize, maxBodyBytes } = settings;
  const plan = planTopic(messages, { queues: route.queues, batchSize, maxBodyBytes });
  for (const { placed, failure } of plan.refused) call.refuse(placed, topic, failure);
  if (typeof full === "string") part.begin({ topic: full, route });
  for (const lane of plan.lanes) startRequests(call, topic, lane);
}

const LEGAL_TOPIC = /^[%|a-zA-Z0-9_-]{1,127}$/;

function topicOf(topic: string, namespace: string): string | Failure {
  const full = namespace === "" || topic.startsWith(`${namespace}%`) ? topic : `${namespace}%${topic}`;
  if (LEGAL_TOPIC.test(full)) return full;
  const advice = "a topic name may have letters, digits, %, |, - and _, and at most 127 of them";
  return messageFailure("ILLEGAL_TOPIC", `${full}: ${advice}`);
}

async function send(
  publishing: Publishing,
  { topic, route }: Destination,
  { items }: Load<Item>,
  scope: AbortScope,
): Promise<readonly string[] | Failure | PublishNotStarted> {
  const { primaries, routes, settings } = publishing;
  const pinned = items[0]?.queue;
  const tried = new Set<string>();
  const start = pinned === undefined ? publishing.turns.next++ : 0;
  let last: Failure | undefined;
  for (let queue = pinned ?? freeQueue(publishing, route, start, tried); queue !== undefined; ) {
    tried.add(queue.broker);
    const found = primaries.link(queue.address);
    const link = found instanceof Promise ? await orAborted(found, scope) : found;
    if (link === undefined) return scope.ending === "closed" ? ABORTED : TOO_SLOW;
    const outcome = "isUsable" in link ? await sendOn(link, settings, { topic, queue, items }, scope) : link;
    if (!("scope" in outcome)) return outcome;
    const failure = outcome.routeIsWrong === true ? routes.contradicted(topic, outcome) : outcome;
    if (failure.scope === "connection" || failure.scope === "destination") routes.expireAll();
    else return failure;
    last = failure;
    // Nothing was stored there, so another broker may take it.
    queue =
      pinned === undefined && failure.code !== "SLAVE_NOT_AVAILABLE"
        ? freeQueue(publishing, route, start, tried)
        : undefined;
  }
  return away(last ?? NO_QUEUE, publishing);
}

const TOO_SLOW = failed("connection", "CONNECT_TIMEOUT", "no connection to the broker before the publish deadline");
const NO_QUEUE = failed("destination", "TOPIC_NOT_WRITABLE", "the topic has no queue that takes messages", {
  retryAfterMs: RETRY_AFTER_MS,
});

/** The next queue at a broker not yet tried, preferring brokers that are not away. */
function freeQueue(
  { primaries }: Publishing,
  { queues }: TopicRoute,
  start: number,
  tried: ReadonlySet<string>,
): Queue | undefined {
  let other: Queue | undefined;
  for (let turn = 0; turn < queues.length; turn += 1) {
    const queue = queues[(start + turn) % queues.length];
    if (queue === undefined || tried.has(queue.broker)) continue;
    if (!primaries.isAway(queue.address)) return queue;
    other ??= queue;
  }
  return other;
}

/** One broker away does not mean all are, as long as another can be used. */
function away(failure: Failure, { primaries }: Publishing): Failure {
  if (failure.scope !== "connection" || failure.code === "UNAUTHORIZED" || !primaries.hasLink()) return failure;
  return { ...failure, scope: "destination", retryAfterMs: RETRY_AFTER_MS };
}

interface Sending {
  readonly topic: string;
  readonly queue: Queue;
  readonly items: readonly Item[];
}

async function sendOn(
  link: Link,
  settings: Settings,
  sending: Sending,
  scope: AbortScope,
): Promise<readonly string[] | Failure> {
  const exchange = await link.exchange(requestOf(settings, sending), { timeoutMs: settings.requestTimeoutMs, scope });
  if (exchange.answer === undefined) return failureOfSilence(exchange);
  const { answer } = exchange;
  return isStored(answer, settings.acceptsWeakReceipts) ? receiptsOf(answer, sending) : failureOfAnswer(answer);
}

function requestOf({ producerGroup }: Settings, { topic, queue, items }: Sending): Request {
  const [only] = items;
  if (items.length === 1 && only !== undefined) {
    const fields = sendFields({ producerGroup, topic, queue, properties: only.text, isBatch: false });
    return { code: SEND_MESSAGE_V2, fields, body: only.body };
  }
  const fields = sendFields({ producerGroup, topic, queue, properties: "", isBatch: true });
  return { code: SEND_BATCH_MESSAGE, fields, body: encodeBatch(items) };
}

function receiptsOf({ fields }: Frame, { items }: Sending): readonly string[] | Failure {
  const { msgId, queueId, queueOffset } = fields;
  if (!msgId || queueOffset === undefined) return NO_RECEIPT;
  const ids = msgId.split(",");
  const first = Number(queueOffset);
  return items.map(
    (_, place) => `${(ids.length === items.length ? ids[place] : ids[0]) ?? ""}:${queueId}:${first + place}`,
  );
}

const NO_RECEIPT = failed("unknown", "NO_RECEIPT", "the broker's answer has no message id and queue offset");
