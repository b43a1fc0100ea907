/**
 * Hands claimed messages to the broker: one call for each topic, keyed and unkeyed messages apart, so that a slow topic or a long run of one
 * ordering key holds up nobody else. No transaction is open meanwhile, and every call ends: by its answer, by its deadline, or a second later
 * by ours.
 */
import type { Broker, FailureScope, OutgoingMessage, PublishResult } from "../brokers/broker.ts";
import type { Clock } from "../runtime/clock.ts";
import { describeError } from "../runtime/errors.ts";
import type { WindowEntry } from "./in-flight-window.ts";

/** A message that is ready for the broker. */
export interface PreparedMessage {
  readonly entry: WindowEntry;
  readonly outgoing: OutgoingMessage;
}

/** One publish call and its answer. */
export interface PublishReport {
  readonly topic: string;
  readonly messages: readonly PreparedMessage[];
  /** Same length and order as `messages`. */
  readonly results: readonly PublishResult[];
  readonly startedMs: number;
}

/** An adapter settles within its deadline plus 1 s (broker contract); this long after that the relay stops waiting for it. */
const GRACE_MS = 2_000;

/** Splits a claimed batch into publish calls. Order within a group is the order of the batch. */
export function groupForPublish(messages: readonly PreparedMessage[]): PreparedMessage[][] {
  const groups = new Map<string, PreparedMessage[]>();
  for (const message of messages) {
    const name = `${message.outgoing.orderingKey === undefined ? "-" : "k"}${message.outgoing.topic}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [message]);
    else group.push(message);
  }
  return [...groups.values()];
}

/**
 * Adapters may come from elsewhere, and not be type-checked. What is not an answer must not be taken for one: a message without an outcome would
 * stay in the window for ever, and a receipt that is no text would never be written.
 */
function whatIsWrong(results: unknown, expected: number): string | undefined {
  if (!Array.isArray(results)) return "gave no list of results";
  if (results.length !== expected) return `gave ${results.length} results for ${expected} messages`;
  return results.every(isResult) ? undefined : "gave a result that is none";
}

function isResult(result: unknown): boolean {
  if (typeof result !== "object" || result === null || !("status" in result)) return false;
  if (result.status === "sent") return "messageId" in result && typeof result.messageId === "string";
  if (result.status === "notStarted") return true;
  return (
    result.status === "failed" && "scope" in result && typeof result.scope === "string" && SCOPES.has(result.scope)
  );
}

const SCOPES: ReadonlySet<string> = new Set<FailureScope>(["message", "destination", "connection", "unknown"]);

export interface PublisherOptions {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly publishTimeoutMs: number;
}

export interface Publisher {
  /** Publishes one group. Never rejects. */
  publish(messages: readonly PreparedMessage[]): Promise<PublishReport>;
  /** Aborts the calls under way: what was handed over is an unknown outcome, the rest was not started. */
  abort(): void;
}

/** Makes a publisher for one broker. */
export function createPublisher({ broker, clock, publishTimeoutMs }: PublisherOptions): Publisher {
  const running = new Set<AbortController>();

  async function publish(messages: readonly PreparedMessage[]): Promise<PublishReport> {
    const controller = new AbortController();
    running.add(controller);
    const startedMs = clock.monotonicMs();
    const deadline = clock.setTimer(() => controller.abort(), publishTimeoutMs);
    const topic = messages[0]?.outgoing.topic ?? "";
    try {
      const results = await answerOf(messages, controller.signal);
      return { topic, messages, results, startedMs };
    } finally {
      deadline.cancel();
      running.delete(controller);
    }
  }

  function answerOf(messages: readonly PreparedMessage[], signal: AbortSignal): Promise<readonly PublishResult[]> {
    return new Promise((resolve) => {
      function unknownForAll(code: string, reason: string): void {
        const result: PublishResult = { status: "failed", scope: "unknown", retriable: true, code, reason };
        resolve(messages.map(() => result));
      }
      const giveUp = clock.setTimer(() => {
        unknownForAll(
          "NO_ANSWER",
          `the ${broker.name} adapter did not answer within ${publishTimeoutMs + GRACE_MS} ms`,
        );
      }, publishTimeoutMs + GRACE_MS);
      handOver(messages, signal).then(
        (results) => {
          giveUp.cancel();
          const wrong = whatIsWrong(results, messages.length);
          if (wrong === undefined) resolve(results);
          else unknownForAll("ADAPTER_BUG", `${broker.name} ${wrong}`);
        },
        (error: unknown) => {
          giveUp.cancel();
          unknownForAll("ADAPTER_BUG", `${broker.name} rejected: ${describeError(error)}`);
        },
      );
    });
  }

  /** async: an adapter that throws before it returns a promise rejects here as well. */
  async function handOver(
    messages: readonly PreparedMessage[],
    signal: AbortSignal,
  ): Promise<readonly PublishResult[]> {
    return await broker.publish(
      messages.map((message) => message.outgoing),
      { signal },
    );
  }

  return {
    publish,
    abort() {
      for (const controller of running) controller.abort();
    },
  };
}
