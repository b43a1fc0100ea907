/**
 * A broker inside this process: for tests of programs that use rowpost, for first steps, and as the reference of the broker contract.
 * What it holds ends with the process.
 */
import { onAbort } from "../runtime/abort.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { createSystemClock } from "../runtime/clock.ts";
import { DeadlineError } from "../runtime/deadline.ts";
import { ConfigurationError } from "../runtime/errors.ts";
import { ABORTED, type Broker, type OutgoingMessage, type PublishFailed, type PublishResult } from "./broker.ts";

/** A message that the memory broker accepted. */
export interface PublishedMessage extends OutgoingMessage {
  /** The receipt: "1", "2", … in the order in which messages were accepted. */
  readonly messageId: string;
}

/** Decides what becomes of one message. Undefined: it is accepted as usual. */
export type OutcomeHook = (
  message: OutgoingMessage,
  options: { readonly signal: AbortSignal },
) => PublishResult | undefined | Promise<PublishResult | undefined>;

/** Options of {@link memory}. */
export interface MemoryBrokerOptions {
  /** Messages kept for `published()`; the oldest are forgotten first. Default 10,000. */
  readonly maxMessages?: number | undefined;
  /** Topics that exist. Default: every topic does. Messages to others fail as a message failure, `TOPIC_NOT_FOUND`. */
  readonly topics?: readonly string[] | undefined;
  /** Larger bodies are refused, `BODY_TOO_LARGE`. Default: no limit. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Test hook: asked before each message is accepted. Return a result to inject it: a failure of any scope, `notStarted`, or a `sent` with a
   * receipt of your own (the message is then not kept: a receipt that lied). Return a promise to make the broker slow: messages of one
   * ordering key wait for each other, all others run side by side, and one that is still waiting when the call's deadline passes is `unknown`.
   */
  readonly outcome?: OutcomeHook | undefined;
  /** For delayed messages. Default: the system's, with timers that keep no process alive. */
  readonly clock?: Clock | undefined;
}

/** The memory broker: a {@link Broker} that can be looked into. */
export interface MemoryBroker extends Broker {
  /** What consumers would see by now, in the order in which it became visible (a delayed message: at its time), at most `maxMessages`. */
  published(topic?: string): readonly PublishedMessage[];
  /**
   * Resolves with `published()` once `count` messages have become visible since the start (or since `clear`), also when they did so before
   * the call. Rejects with a `DeadlineError` after `withinMs`, default 5,000.
   */
  waitFor(count: number, options?: { readonly withinMs?: number | undefined }): Promise<readonly PublishedMessage[]>;
  /** Forgets what was published, and begins to count from 0 for `waitFor`. Receipts go on. */
  clear(): void;
}

interface Waiter {
  readonly count: number;
  resolve(): void;
}

/** What came in, in order: the part that is looked into. */
interface Inbox {
  readonly accept: (message: OutgoingMessage) => string;
  readonly published: (topic?: string) => readonly PublishedMessage[];
  readonly waitFor: (count: number, withinMs: number) => Promise<readonly PublishedMessage[]>;
  readonly clear: () => void;
  readonly close: () => void;
}

/** Makes a memory broker. Throws `ConfigurationError` on options that mean nothing. */
export function memory(options: MemoryBrokerOptions = {}): MemoryBroker {
  const { topics, maxBodyBytes, outcome } = options;
  const known = topics === undefined ? undefined : new Set(topics);
  const inbox = createInbox(options);
  let closed = false;

  /** What is wrong with the message or the broker; undefined: nothing. */
  function refusal(message: OutgoingMessage): PublishFailed | undefined {
    if (closed) return failed("connection", "CLOSED", "the memory broker was closed");
    if (known !== undefined && !known.has(message.topic)) {
      return {
        ...failed("message", "TOPIC_NOT_FOUND", `no topic ${message.topic}; there are: ${[...known].join(", ")}`),
        retriable: true,
      };
    }
    const bytes = maxBodyBytes === undefined ? 0 : Buffer.byteLength(message.body);
    if (maxBodyBytes !== undefined && bytes > maxBodyBytes) {
      return failed("message", "BODY_TOO_LARGE", `body of ${bytes} bytes, the limit is ${maxBodyBytes}`);
    }
    return undefined;
  }

  function deliver(message: OutgoingMessage, injected: PublishResult | undefined): PublishResult {
    return injected ?? refusal(message) ?? { status: "sent", messageId: inbox.accept(message) };
  }

  return {
    name: "memory",
    features: { ordering: "key", delay: true, reportsUnknownTopic: known !== undefined, maxBodyBytes },
    async publish(batch, { signal }) {
      if (outcome === undefined) return publishNow(batch, signal, (message) => deliver(message, undefined));
      return publishSlowly(batch, signal, async (message) => deliver(message, await outcome(message, { signal })));
    },
    async check() {},
    async close() {
      closed = true;
      inbox.close();
    },
    published: inbox.published,
    waitFor: (count, { withinMs = 5_000 } = {}) => inbox.waitFor(count, withinMs),
    clear: inbox.clear,
  };
}

/** Without a hook nothing waits: one pass over the batch. */
function publishNow(
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
  deliver: (message: OutgoingMessage) => PublishResult,
): PublishResult[] {
  if (signal.aborted) return batch.map(() => ABORTED);
  const failedKeys = new Set<string>();
  return batch.map((message) => {
    const { orderingKey } = message;
    if (orderingKey !== undefined && failedKeys.has(orderingKey)) return behindFailed(orderingKey);
    const result = deliver(message);
    if (result.status !== "sent" && orderingKey !== undefined) failedKeys.add(orderingKey);
    return result;
  });
}

/** With a hook: one lane for each ordering key and for each message without one, side by side. */
async function publishSlowly(
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
  deliver: (message: OutgoingMessage) => Promise<PublishResult>,
): Promise<PublishResult[]> {
  const results = batch.map((): PublishResult => ABORTED);
  const lanes = new Map<string | number, number[]>();
  for (const [index, { orderingKey }] of batch.entries()) {
    const lane = orderingKey ?? index;
    lanes.set(lane, [...(lanes.get(lane) ?? []), index]);
  }

  async function runLane(indexes: readonly number[]): Promise<void> {
    let failedKey: string | undefined;
    for (const index of indexes) {
      const message = batch[index];
      if (message === undefined || signal.aborted) return;
      const result = failedKey === undefined ? await untilAborted(deliver(message), signal) : behindFailed(failedKey);
      results[index] = result;
      if (result.status !== "sent") failedKey = message.orderingKey;
    }
  }

  await Promise.all([...lanes.values()].map(runLane));
  return results;
}

/** The result, or `unknown` when the call's deadline comes first: the hook may still let the message through. */
function untilAborted(delivery: Promise<PublishResult>, signal: AbortSignal): Promise<PublishResult> {
  return new Promise((resolve, reject) => {
    const stopFollowing = onAbort(signal, () =>
      resolve(failed("unknown", "TIMEOUT", "no outcome before the deadline")),
    );
    delivery.then(resolve, reject).finally(stopFollowing);
  });
}

function createInbox(options: MemoryBrokerOptions): Inbox {
  const { maxMessages = 10_000, clock = createSystemClock({ unref: true }) } = options;
  if (!Number.isInteger(maxMessages) || maxMessages < 1) {
    throw new ConfigurationError(`memory broker: maxMessages must be a whole number of at least 1, not ${maxMessages}`);
  }
  let kept: PublishedMessage[] = [];
  let visibleCount = 0;
  let receipts = 0;
  const delayed = new Set<Timer>();
  const waiters = new Set<Waiter>();

  function show(message: PublishedMessage): void {
    kept.push(message);
    visibleCount += 1;
    // Cut in one go when it is twice the bound: shifting at each message would copy the array each time.
    if (kept.length >= 2 * maxMessages) kept = kept.slice(-maxMessages);
    for (const waiter of waiters) if (visibleCount >= waiter.count) waiter.resolve();
  }

  function published(topic?: string): readonly PublishedMessage[] {
    const bounded = kept.slice(-maxMessages);
    return topic === undefined ? bounded : bounded.filter((message) => message.topic === topic);
  }

  return {
    accept(message) {
      receipts += 1;
      const accepted = { ...message, messageId: String(receipts) };
      const waitMs = message.deliverAtMs === undefined ? 0 : message.deliverAtMs - clock.wallMs();
      if (waitMs <= 0) {
        show(accepted);
      } else {
        const timer = clock.setTimer(() => {
          delayed.delete(timer);
          show(accepted);
        }, waitMs);
        delayed.add(timer);
      }
      return accepted.messageId;
    },
    published,
    async waitFor(count, withinMs) {
      if (visibleCount < count) await waitUntilVisible(count, withinMs);
      return published();
    },
    clear() {
      kept = [];
      visibleCount = 0;
    },
    close() {
      for (const timer of delayed) timer.cancel();
      delayed.clear();
    },
  };

  function waitUntilVisible(count: number, withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        count,
        resolve() {
          timer.cancel();
          waiters.delete(waiter);
          resolve();
        },
      };
      // On this process's clock even when the broker has a manual one: a test that waits in vain shall end.
      const timer = createSystemClock().setTimer(() => {
        waiters.delete(waiter);
        reject(new DeadlineError(`waiting for ${count} published messages (there are ${visibleCount})`, withinMs));
      }, withinMs);
      waiters.add(waiter);
    });
  }
}

function failed(scope: PublishFailed["scope"], code: string, reason: string): PublishFailed {
  return { status: "failed", scope, retriable: scope !== "message", code, reason };
}

function behindFailed(orderingKey: string): PublishResult {
  return { status: "notStarted", reason: `an earlier message of ordering key ${orderingKey} failed` };
}
