/**
 * Publishes claimed messages: one call per topic, with keyed and unkeyed messages apart, so that a
 * slow topic or a long run of one key holds up nothing else. No transaction is open meanwhile, and
 * every call ends by its answer, its deadline, or the relay's limit.
 */

import type { Broker, FailureScope, PublishOptions, PublishResult, RelayTransaction } from "../../brokers/broker.ts";
import type { Clock } from "../../runtime/clock.ts";
import { describeError } from "../../runtime/errors.ts";
import { grouped } from "../../runtime/grouped.ts";
import type { InFlight } from "../in-flight.ts";

/** Wait past the deadline; the broker contract allows adapters 1 s. */
const GRACE_MS = 2_000;

/** Each call keeps the batch order. */
export function groupForPublish(messages: readonly InFlight[]): InFlight[][] {
  const nameOf = ({ outgoing: { orderingKey, topic } }: InFlight): string =>
    `${orderingKey === undefined ? "-" : "k"}${topic}`;
  return [...grouped(messages, nameOf).values()];
}

/**
 * Checks third-party adapters: a message without an outcome would stay in the window forever, and a
 * receipt that is no string could never be written.
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
  /** Never rejects. */
  publish(messages: readonly InFlight[], transaction?: RelayTransaction): Promise<readonly PublishResult[]>;
  /** Messages already handed over have an unknown outcome, the rest was not started. */
  abort(): void;
}

export function createPublisher({ broker, clock, publishTimeoutMs }: PublisherOptions): Publisher {
  const running = new Set<AbortController>();

  async function publish(
    messages: readonly InFlight[],
    transaction?: RelayTransaction,
  ): Promise<readonly PublishResult[]> {
    const controller = new AbortController();
    running.add(controller);
    const deadline = clock.setTimer(() => controller.abort(), publishTimeoutMs);
    try {
      return await answerOf(messages, { signal: controller.signal, transaction });
    } finally {
      deadline.cancel();
      running.delete(controller);
    }
  }

  function answerOf(messages: readonly InFlight[], call: PublishOptions): Promise<readonly PublishResult[]> {
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
      handOver(messages, call).then(
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

  /** async: an adapter that throws synchronously rejects too. */
  async function handOver(messages: readonly InFlight[], call: PublishOptions): Promise<readonly PublishResult[]> {
    return await broker.publish(
      messages.map((message) => message.outgoing),
      call,
    );
  }

  return {
    publish,
    abort() {
      for (const controller of running) controller.abort();
    },
  };
}
