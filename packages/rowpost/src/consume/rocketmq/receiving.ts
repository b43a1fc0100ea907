/** Long polls, one at a time for each topic and broker, for as many messages as have room. */
import type { Connection } from "../../brokers/rocketmq/connection.ts";
import { failureOfCall, failureOfStatus, type RocketmqStatus } from "../../brokers/rocketmq/failures.ts";
import type { GrpcRuntime } from "../../brokers/rocketmq/grpc.ts";
import type { Session } from "../../brokers/rocketmq/session.ts";
import { onAbort, unlessAborted, untilAborted } from "../../runtime/abort.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { createUnderway } from "../underway.ts";
import type { WireDelivered } from "./message.ts";
import { durationOf } from "./receipts.ts";

export interface ReadableQueue {
  readonly topic: { readonly name: string };
  readonly broker: { readonly name: string };
}

export type Queues =
  | { readonly queues: readonly ReadableQueue[] }
  | { readonly reason: string; readonly isRetriable: boolean };

/** Identifies the messages of one answer; a poll is of one topic. */
export type Poll = object;

interface Parts {
  readonly runtime: GrpcRuntime;
  readonly connection: Connection;
  readonly session: Session;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly closing: AbortSignal;
  readonly group: object;
  readonly groupName: string;
  readonly tags: string;
  readonly invisibleMs: number;
  readonly requestTimeoutMs: number;
  readonly room: number;
  readonly topics: readonly string[];
  readonly queuesOf: (topic: string) => Promise<Queues>;
  readonly take: (message: WireDelivered, poll: Poll) => Promise<unknown>;
}

export interface Receiving {
  readonly over: Promise<unknown>;
}

/** How long the server holds an empty poll. */
const POLL_MS = 15_000;
/** The server's limit of one answer. */
const MOST = 32;
const SESSION_MS = 50;
const LAST_WORDS_MS = 500;
/** As the official clients do. */
const ROUTE_MS = 30_000;

interface Status {
  readonly status?: RocketmqStatus;
}

export function startReceiving(parts: Parts): Receiving {
  const { clock, closing, connection, logger, runtime, session } = parts;
  const polls = new Map<string, Promise<void>>();
  const unread = new Set<string>();
  let unknownSinceMs: number | undefined;
  const cut = new AbortController();

  /** Starts the polls of new brokers; those of a removed broker end by themselves. */
  async function watch(): Promise<void> {
    for (let failures = 0; !closing.aborted; ) {
      let isOver = true;
      for (const topic of parts.topics) {
        const answer = await unlessAborted(closing, parts.queuesOf(topic), () => closing.reason).catch(() => undefined);
        if (answer !== undefined && !look(topic, answer)) isOver = false;
      }
      failures = isOver ? 0 : failures + 1;
      await clock.sleep(failures === 0 ? ROUTE_MS : retryPauseMs(failures), closing);
    }
    // Messages that the server has already sent would come again only after the invisible time.
    const timer = clock.setTimer(() => cut.abort(), LAST_WORDS_MS);
    await Promise.all(polls.values());
    timer.cancel();
  }

  /** False: check again soon. */
  function look(topic: string, answer: Queues): boolean {
    if ("queues" in answer) {
      unread.delete(topic);
      for (const queue of answer.queues) {
        const name = `${topic}\n${queue.broker.name}`;
        if (!polls.has(name)) {
          const running = poll(queue).finally(() => polls.delete(name));
          polls.set(name, running);
        }
      }
      return true;
    }
    // A running poll reports its own errors.
    const isRead = [...polls.keys()].some((name) => name.startsWith(`${topic}\n`));
    if (!isRead && !unread.has(topic)) {
      unread.add(topic);
      logger.warn("a consumer cannot receive; it goes on trying", { what: whatOf(topic), reason: answer.reason });
    }
    return !answer.isRetriable;
  }

  const whatOf = (topic: string): string => `RocketMQ topic ${topic} for the group ${parts.groupName}`;

  /** Reports a lost session once; without it the server delivers nothing. */
  function tellOfSession(): void {
    unknownSinceMs ??= clock.monotonicMs();
    const trouble = session.trouble();
    const isSilent = clock.monotonicMs() - unknownSinceMs > parts.requestTimeoutMs;
    if (unknownSinceMs === Number.POSITIVE_INFINITY || (trouble === undefined && !isSilent)) return;
    unknownSinceMs = Number.POSITIVE_INFINITY;
    const what = `RocketMQ group ${parts.groupName}`;
    const reason = trouble ?? `no answer to our settings within ${parts.requestTimeoutMs} ms`;
    logger.warn("a consumer cannot receive; it goes on trying", { what, reason });
  }

  async function poll(queue: ReadableQueue): Promise<void> {
    const underway = createUnderway(parts.room);
    const forget = onAbort(closing, underway.wake);
    const what = whatOf(queue.topic.name);
    let failures = 0;
    while (!closing.aborted) {
      session.touch();
      if (!session.isKnown()) {
        tellOfSession();
        await clock.sleep(SESSION_MS, closing);
        continue;
      }
      unknownSinceMs = undefined;
      if (underway.room === 0) {
        await untilAborted(underway.change());
        continue;
      }
      const reason = await receive(queue, Math.min(MOST, underway.room), (message, one) => {
        underway.add(parts.take(message, one), message.body?.length ?? 0);
      });
      failures = reason === undefined ? 0 : failures + 1;
      if (reason === undefined || closing.aborted) continue;
      if (failures === 1) {
        logger.warn("a consumer cannot receive; it goes on trying", { what, broker: queue.broker.name, reason });
        const now = await parts.queuesOf(queue.topic.name);
        if ("queues" in now && now.queues.every(({ broker }) => broker.name !== queue.broker.name)) {
          forget();
          return;
        }
      }
      await clock.sleep(retryPauseMs(failures), closing);
    }
    forget();
    await underway.none();
  }

  /** One poll. Resolves to its error, if any. */
  async function receive(
    queue: ReadableQueue,
    count: number,
    take: (message: WireDelivered, poll: Poll) => void,
  ): Promise<string | undefined> {
    const request = {
      group: parts.group,
      messageQueue: queue,
      filterExpression: { type: "TAG", expression: parts.tags },
      batchSize: count,
      invisibleDuration: durationOf(parts.invisibleMs),
      longPollingTimeout: durationOf(POLL_MS),
      autoRenew: false,
    };
    let status: RocketmqStatus | undefined;
    const failure = await connection.receive(runtime.methods.ReceiveMessage, request, {
      timeoutMs: POLL_MS + parts.requestTimeoutMs,
      signal: cut.signal,
      take(answer) {
        const { message, status: told } = answer as Status & { readonly message?: WireDelivered };
        if (message) take(message, request);
        else if (told) status = told;
      },
    });
    if (failure !== undefined) return `${failureOfCall(failure).code}: ${failureOfCall(failure).reason}`;
    if (status?.code === "MESSAGE_NOT_FOUND") return undefined;
    const refused = status === undefined ? undefined : failureOfStatus(status);
    return refused === undefined ? undefined : `${refused.code}: ${refused.reason}`;
  }

  return { over: watch() };
}
