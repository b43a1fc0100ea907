/**
 * The message queue stored in SQL as a broker. In the relay's own database a message is appended in
 * the transaction that writes its row `sent`; in another database a second append of a row is
 * recognized. See docs/queue.md.
 */
import type { Queue } from "../../queue/api.ts";
import type { TopicOptions } from "../../queue/topics/topics.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { BrokerError } from "../../runtime/errors.ts";
import type { Broker, OutgoingMessage, PublishOptions, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { type Call, createCall, type Load, type Outcome } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startRequests } from "../publishing/lanes.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { packedRequests } from "../publishing/packed-requests.ts";
import { inTurns, topicOf } from "../publishing/turns.ts";
import { createWindow, type Window } from "../publishing/window.ts";
import { failureOf, isConflict, isUnknownTopic } from "./failures.ts";

/** Options of {@link queueBroker}. */
export interface QueueBrokerOptions {
  /** From `createQueue`. It stays open when the broker is closed. */
  readonly queue: Queue;
  /**
   * Settings for creating a missing topic. Without it, messages of a missing topic fail and are
   * retried.
   */
  readonly createTopics?: Omit<TopicOptions, "topic"> | undefined;
}

const MOST = { items: 500, bytes: 1_048_576 } as const;
const TRIES = 3;
/**
 * A slower conflict was a wait for a lock. Retrying it on the session that all topics share would
 * hold up the others (rule: isolation).
 */
const PATIENCE_MS = 200;

/**
 * A broker that appends to a queue. The receipt (`message_id`) is the id in the queue. Throws
 * `ConfigurationError` for invalid options.
 */
export function queueBroker(settings: QueueBrokerOptions): Broker {
  checkOptions("queueBroker", settings, KINDS);
  const window = createWindow();
  return createBroker({
    name: "queue",
    title: "queue",
    features: () => ({
      ordering: "key",
      reportsUnknownTopic: settings.createTopics === undefined,
      maxBodyBytes: undefined,
    }),
    publish: (batch, scope, call) =>
      inTurns(batch, scope, topicOf, (messages) => publishTurn({ settings, window, call }, messages, scope)),
    async check() {
      try {
        await settings.queue.relayed.ready();
      } catch (error) {
        const { code, reason, scope } = failureOf(error);
        throw new BrokerError(code, `the message queue cannot be used: ${reason}`, {
          cause: error,
          retriable: scope === "connection",
        });
      }
    },
    close: () => Promise.resolve(),
  });
}

interface Publishing {
  readonly settings: QueueBrokerOptions;
  readonly window: Window;
  readonly call: PublishOptions;
}

interface Item extends PlacedMessage {
  readonly bytes: number;
}

async function publishTurn(
  { settings, window, call: { transaction } }: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const { relayed } = settings.queue;
  const shared = transaction?.database === relayed.database ? transaction : undefined;

  async function append(messages: readonly OutgoingMessage[]): Promise<readonly Outcome[]> {
    if (shared === undefined) return await relayed.append(messages);
    const receipts = await relayed.appendWithin(messages, (appendIn) =>
      shared.settle(messages, (tx, ours) => {
        // The result is no longer wanted, so work not yet begun is skipped.
        if (scope.aborted) throw new Error("the publish call has ended");
        return appendIn(tx, ours);
      }),
    );
    return messages.map(({ id }) => receipts.get(id) ?? NOT_OURS);
  }

  async function outcomesOf({ items, destination }: Load<Item>): Promise<Outcome | readonly Outcome[]> {
    const messages = items.map(({ message }) => message);
    const startedMs = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await append(messages);
      } catch (error) {
        if (attempt >= TRIES || scope.aborted) return failureOf(error);
        if (isConflict(error) && performance.now() - startedMs < PATIENCE_MS) continue;
        if (!isUnknownTopic(error) || settings.createTopics === undefined) return failureOf(error);
        try {
          await settings.queue.createTopic({ ...settings.createTopics, topic: destination });
        } catch (cause) {
          return failureOf(cause);
        }
      }
    }
  }

  const call: Call<Item> = createCall<Item>({
    count: batch.length,
    scope,
    window,
    carrier: (own) => ({
      hand(load) {
        own.settleBy(load, outcomesOf(load));
        return undefined;
      },
      leave: () => failed("unknown", "NO_ANSWER", "the queue's database did not answer before the publish deadline"),
    }),
  });
  for (const [topic, messages] of byTopic(batch)) {
    const items = messages.map((placed): Item => ({ ...placed, bytes: bodyBytes(placed.message) }));
    startRequests(call, topic, packedRequests(items, MOST));
  }
  return await call.done;
}

const NOT_OURS: Outcome = { status: "notStarted", reason: "its row is held by somebody, or not this relay's any more" };

const KINDS: OptionKinds<QueueBrokerOptions> = {
  queue: { needed: true, has: "relayed", from: "made by createQueue({ database }) of rowpost/queue" },
  createTopics: "object",
};
