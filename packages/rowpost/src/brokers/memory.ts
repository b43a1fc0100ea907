/** A broker inside this process, for tests and first steps, and the reference for the contract. */
import { hostname } from "node:os";
import { checkOptions, type OptionKinds } from "../runtime/check-options.ts";
import { createSystemClock } from "../runtime/clock.ts";
import { DeadlineError } from "../runtime/deadline.ts";
import { ConfigurationError, describeError } from "../runtime/errors.ts";
import type { Broker, OutgoingMessage, PublishFailed, PublishOptions, PublishResult } from "./broker.ts";
import type { AbortScope } from "./publishing/abort-scope.ts";
import { createCall, type Outcome } from "./publishing/call.ts";
import { failed } from "./publishing/failures.ts";
import { type PlacedMessage, startLanes, startOneLane } from "./publishing/lanes.ts";
import { createBroker } from "./publishing/lifecycle.ts";
import { createWindow } from "./publishing/window.ts";

/** A message that the memory broker accepted. */
export interface PublishedMessage extends OutgoingMessage {
  /** The receipt: "1", "2", … in order of acceptance. */
  readonly messageId: string;
}

/** Decides the result of one message. Undefined: it is accepted. */
export type OutcomeHook = (
  message: OutgoingMessage,
  options: { readonly signal: AbortSignal },
) => PublishResult | undefined | Promise<PublishResult | undefined>;

/** Options of {@link memory}. */
export interface MemoryBrokerOptions {
  /** Messages kept for `published()`; the oldest are dropped first. Default 10,000. */
  readonly maxMessages?: number | undefined;
  /** Topics that exist; others fail with `TOPIC_NOT_FOUND`. Default: every topic exists. */
  readonly topics?: readonly string[] | undefined;
  /** Larger bodies are refused with `BODY_TOO_LARGE`. Default: no limit. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Test hook, called before each message is accepted. Return a result to inject it: a failure of
   * any scope, `notStarted`, or `sent` with a receipt of your own (the message is then not kept,
   * like a false receipt). Return a promise to slow the broker down: messages of one ordering key
   * wait for each other, others run in parallel, and a message still waiting at the call's deadline
   * is `unknown`.
   */
  readonly outcome?: OutcomeHook | undefined;
}

const KINDS: OptionKinds<MemoryBrokerOptions> = {
  maxMessages: "number",
  topics: "array",
  maxBodyBytes: "number",
  outcome: "function",
};

/** The memory broker: a {@link Broker} that can be looked into. */
export interface MemoryBroker extends Broker {
  /** Messages visible to consumers so far, in order of acceptance, at most `maxMessages`. */
  published(topic?: string): readonly PublishedMessage[];
  /**
   * Resolves with `published()` once `count` messages have been accepted since the start or the
   * last `clear`, including earlier ones. Rejects with a `DeadlineError` after `withinMs`, default
   * 5,000.
   */
  waitFor(count: number, options?: { readonly withinMs?: number | undefined }): Promise<readonly PublishedMessage[]>;
  /** Forgets the published messages and restarts the count of `waitFor`. Receipts continue. */
  clear(): void;
}

interface Waiter {
  readonly count: number;
  resolve(): void;
}

interface Inbox {
  readonly accept: (message: OutgoingMessage) => string;
  readonly published: (topic?: string) => readonly PublishedMessage[];
  readonly waitFor: (count: number, withinMs: number) => Promise<readonly PublishedMessage[]>;
  readonly clear: () => void;
}

/** Creates a memory broker. Throws `ConfigurationError` for invalid options. */
export function memory(options: MemoryBrokerOptions = {}): MemoryBroker {
  checkOptions("memory broker", options, KINDS);
  const { topics, maxBodyBytes, outcome } = options;
  const known = topics === undefined ? undefined : new Set(topics);
  const inbox = createInbox(options);
  const window = createWindow({ bytes: Number.POSITIVE_INFINITY });

  function refusal({ topic, body }: OutgoingMessage): PublishFailed | undefined {
    if (known !== undefined && !known.has(topic)) {
      return failed("message", "TOPIC_NOT_FOUND", `no topic ${topic}; there are: ${[...known].join(", ")}`);
    }
    const bytes = maxBodyBytes === undefined ? 0 : Buffer.byteLength(body);
    if (maxBodyBytes === undefined || bytes <= maxBodyBytes) return undefined;
    const reason = `body of ${bytes} bytes, the limit is ${maxBodyBytes}`;
    return failed("message", "BODY_TOO_LARGE", reason, { retriable: false });
  }

  const deliver = (message: OutgoingMessage): Outcome => refusal(message) ?? inbox.accept(message);

  async function decided(hook: OutcomeHook, message: OutgoingMessage, signal: AbortSignal): Promise<Outcome> {
    try {
      const injected = await hook(message, { signal });
      if (injected === undefined) return deliver(message);
      return injected.status === "sent" ? injected.messageId : injected;
    } catch (error) {
      return failed("unknown", "OUTCOME_HOOK", `the hook failed: ${describeError(error)}`);
    }
  }

  function publish(
    batch: readonly OutgoingMessage[],
    scope: AbortScope,
    { signal }: PublishOptions,
  ): Promise<PublishResult[]> {
    const call = createCall<PlacedMessage>({
      count: batch.length,
      scope,
      window,
      carrier: ({ settle }) => ({
        hand(load) {
          const [item] = load.items;
          if (item === undefined) return;
          if (outcome === undefined) settle(load, deliver(item.message));
          else void decided(outcome, item.message, signal).then((each) => settle(load, each));
        },
        // The hook may still accept it.
        leave: () => failed("unknown", "TIMEOUT", "no outcome before the deadline"),
      }),
    });
    // Without a hook nothing waits, and `published()` has the order of the batch.
    if (outcome === undefined) startOneLane(call, batch);
    else startLanes(call, batch, { destinationOf: ({ topic }) => topic, bytesOf: () => 0 });
    return call.done;
  }

  const broker = createBroker({
    name: "memory",
    title: "memory",
    // Only this process can see the messages.
    target: `${hostname()}:${process.pid}`,
    features: () => ({ ordering: "key", reportsUnknownTopic: known !== undefined, maxBodyBytes }),
    publish,
    async check() {},
    async close() {},
  });
  const { published, clear } = inbox;
  const waitFor: MemoryBroker["waitFor"] = (count, { withinMs = 5_000 } = {}) => inbox.waitFor(count, withinMs);
  return Object.assign(broker, { published, waitFor, clear });
}

function createInbox(options: MemoryBrokerOptions): Inbox {
  const { maxMessages = 10_000 } = options;
  if (!Number.isInteger(maxMessages) || maxMessages < 1) {
    throw new ConfigurationError(`memory broker: maxMessages must be a whole number of at least 1, not ${maxMessages}`);
  }
  let kept: PublishedMessage[] = [];
  let acceptedCount = 0;
  let receipts = 0;
  const waiters = new Set<Waiter>();

  function published(topic?: string): readonly PublishedMessage[] {
    const bounded = kept.slice(-maxMessages);
    return topic === undefined ? bounded : bounded.filter((message) => message.topic === topic);
  }

  return {
    accept(message) {
      receipts += 1;
      kept.push({ ...message, messageId: String(receipts) });
      acceptedCount += 1;
      // Cut in bulk: shifting at each message would copy the array every time.
      if (kept.length >= 2 * maxMessages) kept = kept.slice(-maxMessages);
      for (const waiter of waiters) if (acceptedCount >= waiter.count) waiter.resolve();
      return String(receipts);
    },
    published,
    async waitFor(count, withinMs) {
      if (acceptedCount < count) await waitUntilAccepted(count, withinMs);
      return published();
    },
    clear() {
      kept = [];
      acceptedCount = 0;
    },
  };

  function waitUntilAccepted(count: number, withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        count,
        resolve() {
          timer.cancel();
          waiters.delete(waiter);
          resolve();
        },
      };
      const timer = createSystemClock().setTimer(() => {
        waiters.delete(waiter);
        reject(new DeadlineError(`waiting for ${count} published messages (there are ${acceptedCount})`, withinMs));
      }, withinMs);
      waiters.add(waiter);
    });
  }
}
