/**
 * Context of a case: its own messages, publishing with the general checks of the contract, and
 * waiting for arrivals.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Broker, OutgoingMessage, PublishResult } from "../../brokers/broker.ts";
import { type ArrivedMessage, type BrokerHarness, bodyLimit } from "./harness.ts";

/**
 * Beyond this a call is considered stuck. More than the contract's grace of 1 s, because a busy
 * machine is not the adapter's delay; less than the 10 s after which adapters give up a silent
 * server.
 */
export const GUARD_MS = 7_000;

/** Passed to each case. */
export interface BrokerCaseContext {
  /** The harness of the run. */
  readonly harness: BrokerHarness;
  /** Created for this case and closed after it. */
  readonly broker: Broker;
  /** Unique prefix of this case's keys. */
  readonly keyPrefix: string;
  /**
   * A message to `topics.main` with its own key and identity. `changes` replace fields, and the
   * identity headers follow.
   */
  message(changes?: Partial<OutgoingMessage>): OutgoingMessage;
  /**
   * Publishes and checks the general rules: one well-formed result per message, in time, and no
   * follower of a failed message of its ordering key handed over. The signal is aborted after
   * `deadlineMs` (default 10,000).
   */
  publish(batch: readonly OutgoingMessage[], options?: PublishCallOptions): Promise<PublishResult[]>;
  /** {@link publish}, and every message must be `sent`. */
  publishAll(batch: readonly OutgoingMessage[], options?: PublishCallOptions): Promise<void>;
  /** Publishes unsent messages repeatedly, as a relay would, for at most `recoverWithinMs`. */
  publishUntilSent(batch: readonly OutgoingMessage[]): Promise<void>;
  /**
   * Waits until all these messages have arrived. Returns this case's arrivals in the topic,
   * including duplicates.
   */
  arrivals(topic: string, expected: readonly OutgoingMessage[]): Promise<readonly ArrivedMessage[]>;
}

/** Options of one call. */
export interface PublishCallOptions {
  /** When the signal is aborted, in ms. Default 10,000. */
  readonly deadlineMs?: number | undefined;
  /** Default: the case's broker. */
  readonly broker?: Broker | undefined;
}

export function createCaseContext(harness: BrokerHarness, broker: Broker): BrokerCaseContext {
  const keyPrefix = `c${randomBytes(6).toString("hex")}`;
  const { consumeWithinMs = 20_000, recoverWithinMs = 10_000 } = harness;
  let counter = 0;

  function message(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
    counter += 1;
    const type = changes.type ?? "contract.checked";
    const key = changes.key ?? `${keyPrefix}-${counter}`;
    const attempt = changes.attempt ?? 1;
    return {
      id: String(counter),
      topic: harness.topics.main,
      body: JSON.stringify({ number: counter }),
      contentType: "application/json",
      orderingKey: undefined,
      ...changes,
      type,
      key,
      attempt,
      headers: { ...changes.headers, ...identityHeaders(type, key, attempt) },
    };
  }

  async function publish(
    batch: readonly OutgoingMessage[],
    options: PublishCallOptions = {},
  ): Promise<PublishResult[]> {
    const { deadlineMs = 10_000, broker: used = broker } = options;
    const results = await settledInTime(used, batch, deadlineMs);
    checkResults(batch, results);
    return results;
  }

  async function publishAll(batch: readonly OutgoingMessage[], options?: PublishCallOptions): Promise<void> {
    for (const result of await publish(batch, options)) assertSent(result);
  }

  async function publishUntilSent(batch: readonly OutgoingMessage[]): Promise<void> {
    const giveUpAt = performance.now() + recoverWithinMs;
    let left = batch;
    for (;;) {
      const results = await publish(left, { deadlineMs: 2_000 });
      left = left.filter((_message, index) => results[index]?.status !== "sent");
      if (left.length === 0) return;
      if (performance.now() > giveUpAt) {
        const last = results.find((result) => result.status !== "sent");
        assert.fail(
          `${left.length} of ${batch.length} messages not sent within ${recoverWithinMs} ms; last: ${describe(last)}`,
        );
      }
      await delay(50);
    }
  }

  async function arrivals(topic: string, expected: readonly OutgoingMessage[]): Promise<readonly ArrivedMessage[]> {
    const wanted = expected.map(({ key }) => key);
    const giveUpAt = performance.now() + consumeWithinMs;
    let count = new Set(wanted).size;
    for (;;) {
      const withinMs = Math.max(0, giveUpAt - performance.now());
      const received = await harness.consume({ topic, keyPrefix, count, withinMs });
      const arrived = new Set(received.map(({ headers }) => headers["rowpost-key"] ?? ""));
      const missing = wanted.filter((key) => !arrived.has(key));
      if (missing.length === 0) return received;
      assert.ok(
        performance.now() < giveUpAt,
        `${missing.length} keys did not arrive in ${topic} within ${consumeWithinMs} ms: ${missing.slice(0, 10).join(", ")}`,
      );
      // Other messages of this case made up the count: wait for one more.
      count = arrived.size + 1;
    }
  }

  return { harness, broker, keyPrefix, message, publish, publishAll, publishUntilSent, arrivals };
}

function identityHeaders(type: string, key: string, attempt: number): Record<string, string> {
  return {
    "rowpost-id": `${type}:${key}`,
    "rowpost-type": type,
    "rowpost-key": key,
    "rowpost-attempt": String(attempt),
  };
}

async function settledInTime(
  broker: Broker,
  batch: readonly OutgoingMessage[],
  deadlineMs: number,
): Promise<PublishResult[]> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new Error(`publish timeout of ${deadlineMs} ms`)), deadlineMs);
  const complaint = `publish did not settle after its deadline of ${deadlineMs} ms`;
  try {
    return await guarded(broker.publish(batch, { signal: deadline.signal }), complaint, deadlineMs + GUARD_MS);
  } finally {
    clearTimeout(timer);
  }
}

/** The result of `run`; rejects with the complaint after the guard time. */
export async function guarded<T>(run: Promise<T>, complaint: string, guardMs: number = GUARD_MS): Promise<T> {
  let guard: NodeJS.Timeout | undefined;
  const open = new Promise<never>((_resolve, reject) => {
    guard = setTimeout(() => reject(new assert.AssertionError({ message: complaint })), guardMs);
  });
  try {
    return await Promise.race([run, open]);
  } finally {
    clearTimeout(guard);
  }
}

const SCOPES: readonly string[] = ["message", "destination", "connection", "unknown"];

function checkResults(batch: readonly OutgoingMessage[], results: readonly PublishResult[]): void {
  assert.equal(results.length, batch.length, "one result for each message");
  // First failed message of each key.
  const failures = new Map<string, PublishResult>();
  for (const [index, result] of results.entries()) {
    checkShape(result);
    const orderingKey = batch[index]?.orderingKey;
    if (orderingKey === undefined) continue;
    const where = `message ${index} follows a failed one of its ordering key "${orderingKey}"`;
    const failure = failures.get(orderingKey);
    if (failure === undefined && result.status !== "sent") failures.set(orderingKey, result);
    const wentTogether = failure !== undefined && isUnknown(failure) && isUnknown(result);
    if (failure !== undefined && !wentTogether)
      assert.equal(result.status, "notStarted", `${where}: ${describe(result)}`);
  }
}

function isUnknown(result: PublishResult): boolean {
  return result.status === "failed" && result.scope === "unknown";
}

function checkShape(result: PublishResult): void {
  switch (result.status) {
    case "sent":
      assert.ok(
        result.messageId.length > 0 && result.messageId.length <= 255,
        `receipt of 1 to 255 characters: ${describe(result)}`,
      );
      return;
    case "failed":
      assert.ok(SCOPES.includes(result.scope), `a scope of the contract: ${describe(result)}`);
      assert.ok(result.code.length > 0 && result.reason.length > 0, `a code and a reason: ${describe(result)}`);
      return;
    case "notStarted":
      assert.ok(result.reason.length > 0, `a reason: ${describe(result)}`);
      return;
    default:
      assert.fail(`a status of the contract: ${describe(result)}`);
  }
}

export function assertSent(result: PublishResult | undefined): void {
  assert.equal(result?.status, "sent", describe(result));
}

/** Fails unless the message failed by itself. */
export function assertMessageFailure(result: PublishResult | undefined, retriable: boolean): void {
  assert.ok(result?.status === "failed" && result.scope === "message", `a failure of the message: ${describe(result)}`);
  assert.equal(result.retriable, retriable, `retriable: ${describe(result)}`);
}

export function unsendable(context: BrokerCaseContext, message: OutgoingMessage): OutgoingMessage {
  const { unsendable: change } = context.harness;
  if (change !== undefined) return change(message);
  return { ...message, body: "x".repeat(given(bodyLimit(context.harness), "a limit of the body") + 1) };
}

/** The value, or a failure. For values guaranteed by a case's needs. */
export function given<Value>(value: Value | undefined, what: string): Value {
  assert.ok(value !== undefined, `${what} is missing`);
  return value;
}

export function describe(result: PublishResult | undefined): string {
  return JSON.stringify(result) ?? "no result";
}
