/**
 * RocketMQ 5: our own consumer on the gRPC of its proxy. The official Node.js client hangs at its
 * start without an answer, and polls only one queue of each broker.
 */
import type { CallResult } from "../../brokers/rocketmq/connection.ts";
import { failureOfCall, failureOfStatus, type RocketmqStatus } from "../../brokers/rocketmq/failures.ts";
import { loadGrpc } from "../../brokers/rocketmq/grpc.ts";
import { type RocketmqOptions, type Settings, settingsFrom } from "../../brokers/rocketmq/options.ts";
import { askForRoute, openClient, resourceOf, type Session } from "../../brokers/rocketmq/session.ts";
import type { Clock } from "../../runtime/clock.ts";
import { BrokerError, ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import type { DeliveredMessage } from "../message.ts";
import { type ConsumeOptions, type OwnKinds, type Park, type Unhandled, workSettings } from "../options.ts";
import { createWork, type Verdict } from "../work.ts";
import { type RocketmqDelivered, rawOf, rocketmqMessage, type WireDelivered } from "./message.ts";
import { createReceipts, type Lent } from "./receipts.ts";
import { type Poll, type Queues, type ReadableQueue, startReceiving } from "./receiving.ts";

/** Connection options, as of the broker of rowpost/rocketmq. */
type Place = Pick<
  RocketmqOptions,
  "endpoints" | "namespace" | "tls" | "accessKey" | "secretKey" | "sessionToken" | "requestTimeoutMs"
>;

/** Options of {@link consumeRocketmq}. */
export interface RocketmqConsumeOptions<Tx = Transaction> extends ConsumeOptions<RocketmqDelivered, Tx>, Place {
  /** Consumer group. It must exist. An orderly one keeps the order of message groups. */
  readonly group: string;
  /** Topics to read. They must exist. */
  readonly topics: readonly string[];
  /** Tags, which are message types, as `order.paid || order.refunded`. Default `*`: all. */
  readonly tags?: string | undefined;
  /**
   * Messages in memory for each broker, including those being handled, shared by topics. Default:
   * four times `concurrency`.
   */
  readonly prefetch?: number | undefined;
  /**
   * How long the server hides a message from other consumers, in ms, for example after this process
   * died. Renewed while a handler runs. Default 30,000; the server's minimum is 10,000.
   */
  readonly invisibleMs?: number | undefined;
  /**
   * `redeliver`, the default: again after `retry.maxMs`, at least 1 s; the server counts it towards
   * the group's limit, and then makes it a dead letter. A message of a message group stays here and
   * is retried after `retry.maxMs` until it is handled, blocking its queue. `dead-letter`: at once.
   */
  readonly unhandled?: Unhandled | Park<RocketmqDelivered> | undefined;
}

const KINDS: OwnKinds<RocketmqConsumeOptions> = {
  endpoints: ["string", "array"],
  namespace: "string",
  tls: ["boolean", "object"],
  accessKey: "string",
  secretKey: "string",
  sessionToken: "string",
  requestTimeoutMs: "number",
  group: "string",
  topics: "array",
  tags: "string",
  prefetch: "number",
  invisibleMs: "number",
};

/** A message let go at the close is soon available to the next consumer. */
const LET_GO_MS = 1_000;

/**
 * Handles the messages of topics, each once, and acknowledges each after its commit. Resolves when
 * it receives. Throws `ConfigurationError`, `MissingPeerError`, and `BrokerError` if the server, a
 * topic or the group does not exist. Later failures are retried until they are over.
 */
export async function consumeRocketmq<Tx = Transaction>(options: RocketmqConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeRocketmq", options, KINDS);
  const { group, tags = "*", topics } = options;
  const invisibleMs = wholeNumber("consumeRocketmq: invisibleMs", options.invisibleMs ?? 30_000, 10_000, 43_200_000);
  const place = placeOf(options);
  const runtime = await loadGrpc();
  const { requestTimeoutMs } = place;
  const resource = (name: string): object => resourceOf(place.namespace, name);
  const subscriptions = topics.map((name) => ({
    topic: resource(name),
    expression: { type: "TAG", expression: tags },
  }));
  const { connection, session } = openClient(runtime, place, {
    topics: () => [...topics],
    subscriber: { group: resource(group), subscription: { group: resource(group), subscriptions } },
  });
  const { clock, logger, pauseMs, prefetch } = settings;
  const queuesOf = async (topic: string): Promise<Queues> =>
    queuesIn(await askForRoute({ connection, runtime }, place, topic));
  const work = createWork(settings);
  const receipts = createReceipts({
    runtime,
    connection,
    clock,
    group: resource(group),
    resource,
    invisibleMs,
    requestTimeoutMs,
  });
  const groups = createGroups();

  async function tell(lent: Lent, poll: Poll, verdict: Verdict): Promise<void> {
    groups.settled(lent, poll, verdict);
    if (verdict === "redeliver") tellOfLast(lent);
    if (verdict === "handled") await receipts.acknowledge(lent);
    else if (verdict === "dead-letter") await receipts.bury(lent);
    else await receipts.giveBack(lent, work.closing.aborted ? LET_GO_MS : pauseMs, verdict === "redeliver");
  }

  function tellOfLast({ raw: { deliveryAttempt, messageId, topic } }: Lent): void {
    if (deliveryAttempt < (session.maxDeliveries() ?? Number.POSITIVE_INFINITY)) return;
    logger.error("a message was not handled in its last delivery, and becomes a dead letter of its group", {
      topic,
      group,
      messageId,
      deliveryAttempt,
      deadLetters: `%DLQ%${group}`,
    });
  }

  async function take(message: WireDelivered, poll: Poll): Promise<unknown> {
    const raw = rawOf(message);
    const lent = receipts.lend(raw, message.systemProperties?.receiptHandle ?? "");
    return await work.handle({
      raw,
      read: (identity): DeliveredMessage => rocketmqMessage(raw, identity),
      within: raw.topic,
      // The messages behind it would go back too; the server counts each of them and makes dead
      // letters of unhandled ones.
      stays: raw.messageGroup === undefined ? undefined : "always",
      isOver: () => receipts.isLost(lent) || groups.isHeldUp(lent, poll),
      tell: (verdict) => tell(lent, poll, verdict),
    });
  }

  async function end(): Promise<void> {
    receipts.close();
    await session.close();
    connection.close();
  }

  try {
    for (const topic of topics) checkTopic(topic, await queuesOf(topic));
    await untilKnown(session, clock, group, requestTimeoutMs);
  } catch (error) {
    await end();
    throw error;
  }
  const receiving = startReceiving({
    runtime,
    connection,
    session,
    clock,
    logger,
    closing: work.closing,
    group: resource(group),
    groupName: group,
    tags,
    invisibleMs,
    requestTimeoutMs,
    topics,
    queuesOf,
    take,
    room: Math.max(1, Math.floor(prefetch / topics.length)),
  });
  return consumptionOf(async () => {
    const closed = await work.drain();
    if (closed.drained) await receiving.over;
    await end();
    return closed;
  });
}

function placeOf(options: Place & { readonly group: unknown; readonly topics: readonly string[] }): Settings {
  const { accessKey, endpoints, group, namespace, requestTimeoutMs, secretKey, sessionToken, tls, topics } = options;
  if (typeof group !== "string" || group === "" || topics === undefined || topics.length === 0) {
    throw new ConfigurationError('consumeRocketmq takes { group: "points", topics: ["orders"] }');
  }
  return settingsFrom({ endpoints, namespace, tls, accessKey, secretKey, sessionToken, requestTimeoutMs });
}

/**
 * A group's message that is given back, for example with an expired receipt, holds back later ones
 * of the same poll: the server delivers them again behind it. Later polls are in the server's
 * order: the message may be another consumer's by then, or a dead letter, and never come back.
 */
function createGroups(): {
  settled(lent: Lent, poll: Poll, verdict: Verdict): void;
  isHeldUp(lent: Lent, poll: Poll): boolean;
} {
  const broken = new WeakMap<Poll, Set<string>>();
  return {
    settled({ raw: { messageGroup } }, poll, verdict) {
      if (messageGroup === undefined || verdict === "handled" || verdict === "dead-letter") return;
      const groups = broken.get(poll);
      if (groups === undefined) broken.set(poll, new Set([messageGroup]));
      else groups.add(messageGroup);
    },
    isHeldUp: ({ raw: { messageGroup } }, poll) =>
      messageGroup !== undefined && broken.get(poll)?.has(messageGroup) === true,
  };
}

interface RouteAnswer {
  readonly status?: RocketmqStatus;
  readonly messageQueues?: readonly (ReadableQueue & {
    readonly permission?: string;
    readonly broker: { readonly name: string; readonly id?: number };
  })[];
}

/** One readable queue of each primary: a poll of it brings messages of all its queues. */
function queuesIn(result: CallResult): Queues {
  const answer = result.ok ? (result.response as RouteAnswer) : undefined;
  const failure = result.ok ? failureOfStatus(answer?.status) : failureOfCall(result);
  if (failure !== undefined) {
    return { reason: `${failure.code}: ${failure.reason}`, isRetriable: failure.scope !== "message" };
  }
  const queues = new Map<string, ReadableQueue>();
  for (const queue of answer?.messageQueues ?? []) {
    const isReadable = queue.permission === "READ" || queue.permission === "READ_WRITE";
    if (isReadable && (queue.broker.id ?? 0) === 0 && !queues.has(queue.broker.name))
      queues.set(queue.broker.name, queue);
  }
  return { queues: [...queues.values()] };
}

function checkTopic(topic: string, answer: Queues): void {
  if ("queues" in answer && answer.queues.length > 0) return;
  const [reason, isRetriable] =
    "queues" in answer ? ["no queue of it may be read", false] : [answer.reason, answer.isRetriable];
  throw new BrokerError("CANNOT_CONSUME", `RocketMQ topic ${topic} cannot be read: ${reason}`, {
    retriable: isRetriable,
  });
}

/** Waits until the server accepts our settings, or throws its reason. */
async function untilKnown(session: Session, clock: Clock, group: string, withinMs: number): Promise<void> {
  const until = clock.monotonicMs() + withinMs;
  session.touch();
  while (!session.isKnown()) {
    const trouble = session.trouble();
    if (trouble !== undefined || clock.monotonicMs() > until) {
      const reason = trouble ?? `no answer within ${withinMs} ms`;
      const advice = `does the group exist? mqadmin updateSubGroup -c CLUSTER -g ${group}, with -o true to keep the order of message groups`;
      throw new BrokerError("CANNOT_CONSUME", `RocketMQ does not take the group ${group}: ${reason}; ${advice}`);
    }
    await clock.sleep(20);
  }
}
