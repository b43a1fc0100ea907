/**
 * From a claimed batch to its settled rows: publish by topic, turn answers into outcomes, tell the breaker and the gate, settle. Batches flow side
 * by side; the window bounds how many.
 */
import { setImmediate } from "node:timers/promises";
import type { PublishResult } from "../brokers/broker.ts";
import type { EventEmitter } from "../runtime/events.ts";
import type { InFlightWindow } from "./in-flight-window.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Outlets } from "./outlets.ts";
import { outcomeOf } from "./publish-outcome.ts";
import type { PreparedMessage, Publisher, PublishReport } from "./publisher.ts";
import { groupForPublish } from "./publisher.ts";
import type { RelayEvents } from "./relay-events.ts";
import type { RelaySettings } from "./relay-options.ts";
import type { Settlement, Settler } from "./settler.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

export interface RelayFlowOptions {
  readonly settings: RelaySettings;
  readonly keeper: Pick<LeaseKeeper, "leftMs">;
  readonly window: Pick<InFlightWindow, "size">;
  readonly outlets: Pick<Outlets, "of">;
  readonly breaker: TopicBreaker;
  readonly publisher: Publisher;
  readonly settler: Settler;
  readonly events: EventEmitter<RelayEvents>;
  /** A topic whose destination was away works again: its backed-off messages may come forward. */
  readonly onTopicBack: (topic: string) => void;
  /** A broker that was away answers. */
  readonly onBrokerBack: () => void;
}

export interface RelayFlow {
  /** Takes a claimed batch. */
  readonly publish: (messages: readonly PreparedMessage[]) => void;
  /** Gives these claimed messages back, uncounted: an earlier one of their key could not be claimed with them. */
  readonly giveBack: (messages: readonly PreparedMessage[]) => void;
  /** Gives back, uncounted, whatever is claimed from now on: the relay is stopping. */
  refuse(): void;
  /** Resolves when every batch taken so far is settled. */
  idle(): Promise<void>;
}

const STOPPING: PublishResult = { status: "notStarted", reason: "the relay is stopping" };
const BEHIND: PublishResult = { status: "notStarted", reason: "an earlier message of its key changed meanwhile" };
const LEASE_SHORT: PublishResult = { status: "notStarted", reason: "too little is left of the lease" };

/**
 * The round that claimed this batch goes on with its next scan after one turn of the event loop (relay-runner.ts); publishing begins one turn
 * later, so that the database works while the adapter encodes. On PostgreSQL, seven benchmarks in turn: drain into Redis 40,000 -> 43,300 msg/s,
 * single ones overlapping; into RocketMQ no difference.
 */
async function nextScanIsSent(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Makes the flow of one relay. */
export function createRelayFlow(options: RelayFlowOptions): RelayFlow {
  const { settings, keeper, outlets, breaker, publisher, settler, events } = options;
  const running = new Set<Promise<void>>();
  let refusing = false;

  async function flow(messages: readonly PreparedMessage[]): Promise<void> {
    await nextScanIsSent();
    await settings.reach("beforePublish");
    const ready: PreparedMessage[] = [];
    const back: PreparedMessage[] = [];
    // Between the claim and here the process may have been frozen: no publish starts with less lease than its deadline.
    for (const message of messages) {
      const fits = !refusing && keeper.leftMs(message.entry.message.shard) >= settings.publishTimeoutMs;
      (fits ? ready : back).push(message);
    }
    giveBack(back, refusing ? STOPPING : LEASE_SHORT);
    await Promise.all(groupForPublish(ready).map(publishGroup));
  }

  function giveBack(messages: readonly PreparedMessage[], result: PublishResult): void {
    const startedMs = settings.clock.monotonicMs();
    // A probe that was never published tells its breaker nothing, but makes room for the next one; else its topic would rest for ever.
    for (const topic of new Set(messages.map(({ outgoing }) => outgoing.topic)))
      breaker.report({ topic, sent: 0, destination: 0, retriable: 0, retryAfterMs: undefined });
    settler.submit(messages.map((message) => settlement(message, result, startedMs)));
  }

  async function publishGroup(group: readonly PreparedMessage[]): Promise<void> {
    const report = await publisher.publish(group);
    await settings.reach("published");
    learn(report);
    settler.submit(
      report.messages.map((message, index) => settlement(message, report.results[index] ?? STOPPING, report.startedMs)),
    );
  }

  function settlement(message: PreparedMessage, result: PublishResult, startedMs: number): Settlement {
    const delay = { destinationRestMs: breaker.restMs(message.outgoing.topic) };
    return {
      entry: message.entry,
      result,
      outcome: outcomeOf(message.entry.message, result, settings, delay),
      startedMs,
    };
  }

  /** What a publish says about its topic and about the broker. */
  function learn({ topic, results, startedMs, messages }: PublishReport): void {
    const tally = { sent: 0, message: 0, retriable: 0, destination: 0, connection: 0, unknown: 0, notStarted: 0 };
    let reason = "";
    let retryAfterMs: number | undefined;
    for (const result of results) {
      if (result.status !== "failed") tally[result.status] += 1;
      else {
        tally[result.scope] += 1;
        if (result.scope === "message" && result.retriable) tally.retriable += 1;
        reason = `${result.code}: ${result.reason}`;
        // A time that was named for one message is that message's own backoff; its topic does not wait for it.
        if (result.scope === "destination") retryAfterMs = result.retryAfterMs ?? retryAfterMs;
      }
    }
    measure(topic, tally, settings.clock.monotonicMs() - startedMs, messages);
    learnOfBroker(topic, tally, reason);
    // Not after failures that counted as attempts: a good message beside a bad one would cut the bad one's backoff short, again and again.
    const wasAway = breaker.wasAway(topic);
    const change = breaker.report({
      topic,
      sent: tally.sent,
      destination: tally.destination,
      retriable: tally.retriable,
      retryAfterMs,
    });
    if (change === "opened") {
      settings.metrics.gauge("rowpost_circuit_open", { topic }, 1);
      settings.logger.warn("a topic rests", { topic, reason });
      events.emit("topicPaused", { topic, reason });
    } else if (change === "closed") {
      settings.metrics.gauge("rowpost_circuit_open", { topic }, 0);
      settings.logger.info("a topic works again", { topic });
      events.emit("topicResumed", { topic });
      if (wasAway) options.onTopicBack(topic);
    }
  }

  function learnOfBroker(topic: string, tally: Readonly<Record<string, number>>, reason: string): void {
    const answered = (tally["sent"] ?? 0) + (tally["message"] ?? 0) + (tally["destination"] ?? 0);
    const silent = (tally["connection"] ?? 0) + (tally["unknown"] ?? 0);
    const { gate, name: broker } = outlets.of(topic);
    if (answered > 0) {
      if (!gate.answered()) return;
      settings.metrics.gauge("rowpost_broker_away", { broker }, 0);
      settings.logger.info("the broker answers again", { broker });
      events.emit("brokerBack", { broker });
      options.onBrokerBack();
    } else if (silent > 0 && gate.unreachable()) {
      settings.metrics.gauge("rowpost_broker_away", { broker }, 1);
      settings.logger.error("the broker does not answer; waiting for it", { broker, reason });
      events.emit("brokerAway", { broker, reason });
    }
  }

  function measure(
    topic: string,
    tally: Readonly<Record<"sent" | "message" | "destination" | "connection" | "unknown" | "notStarted", number>>,
    durationMs: number,
    messages: readonly PreparedMessage[],
  ): void {
    const { metrics } = settings;
    metrics.observe("rowpost_publish_duration_ms", { topic }, durationMs);
    metrics.gauge("rowpost_in_flight", {}, options.window.size);
    if (tally.sent > 0) {
      metrics.increment("rowpost_published_total", { topic }, tally.sent);
      // One observation for a batch, of its oldest message: what an operator asks is how late the latest ones are.
      const oldest = Math.max(...messages.map(({ entry }) => entry.message.waitingMs));
      metrics.observe("rowpost_delivery_delay_ms", { topic }, oldest + durationMs);
    }
    if (tally.notStarted > 0) metrics.increment("rowpost_not_started_total", { topic }, tally.notStarted);
    for (const scope of ["message", "destination", "connection", "unknown"] as const) {
      if (tally[scope] > 0) metrics.increment("rowpost_publish_failures_total", { topic, scope }, tally[scope]);
    }
  }

  return {
    publish(messages) {
      const batch = flow(messages).finally(() => running.delete(batch));
      running.add(batch);
    },
    giveBack(messages) {
      giveBack(messages, BEHIND);
    },
    refuse() {
      refusing = true;
    },
    async idle() {
      while (running.size > 0 || settler.waiting > 0) {
        await Promise.all(running);
        await settler.idle();
      }
    },
  };
}
