/**
 * Opens and closes breakers and gates according to the answers of a publish, and reports it:
 *
 * | answer                         | its topic         | its broker            |
 * | ------------------------------ | ----------------- | --------------------- |
 * | sent                           | is well           | is there              |
 * | refused (scope `message`)      | slowed, if all    | is there              |
 * | the same, perhaps absent       | absence.ts: one or the other                  |
 * | `destination`                  | rests             | is there              |
 * | `connection`                   | -                 | is away, if all       |
 * | no answer (`unknown`)          | rests             | -                     |
 * | not started                    | -                 | -                     |
 */
import type { PublishResult } from "../../brokers/broker.ts";
import type { EventEmitter } from "../../runtime/events.ts";
import type { RelayEvents } from "../events.ts";
import type { RelaySettings } from "../options.ts";
import { createAbsence } from "./absence.ts";
import type { Outlets } from "./outlets.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

export interface Health {
  /** Returns the results' meaning: a failure may be the destination's. */
  learn(topic: string, ids: readonly string[], results: readonly PublishResult[]): readonly PublishResult[];
  /**
   * Messages of these topics were not published. A probe among them makes room for the next;
   * otherwise its topic would rest forever.
   */
  notTried(topics: Iterable<string>): void;
  restMs(topic: string): number;
}

export interface HealthOptions {
  readonly settings: Pick<RelaySettings, "clock" | "metrics" | "logger">;
  readonly outlets: Pick<Outlets, "of">;
  readonly breaker: TopicBreaker;
  readonly events: EventEmitter<RelayEvents>;
  /** A topic's destination works again: its backed-off messages may come forward. */
  readonly onTopicBack: (topic: string) => void;
  readonly onBrokerBack: () => void;
}

interface Tally {
  sent: number;
  message: number;
  /** Those that a retry can fix. */
  retriable: number;
  destination: number;
  connection: number;
  unknown: number;
  notStarted: number;
  /** Of the last failure. */
  reason: string;
  retryAfterMs: number | undefined;
}

export function createHealth({ settings, outlets, breaker, events, ...on }: HealthOptions): Health {
  const { metrics, logger } = settings;
  const absence = createAbsence(settings.clock);

  function learnOfBroker(topic: string, tally: Tally): void {
    const { gate, name: broker } = outlets.of(topic);
    const { reason } = tally;
    if (tally.sent + tally.message + tally.destination > 0) {
      if (!gate.answered()) return;
      metrics.gauge("rowpost_broker_away", { broker }, 0);
      logger.info("the broker answers again", { broker });
      events.emit("brokerBack", { broker });
      on.onBrokerBack();
    } else if (tally.connection > 0 && gate.unreachable(reason)) {
      metrics.gauge("rowpost_broker_away", { broker }, 1);
      logger.error("the broker cannot be reached; waiting for it", { broker, reason });
      events.emit("brokerAway", { broker, reason });
    }
  }

  function learnOfTopic(topic: string, tally: Tally): void {
    // Not after counted failures: a good message would cut the backoff of a bad one short each
    // time.
    const wasAway = breaker.wasAway(topic);
    const { reason } = tally;
    const change = breaker.report({ ...tally, topic });
    if (change === "opened") {
      metrics.gauge("rowpost_circuit_open", { topic }, 1);
      logger.warn("a topic rests", { topic, reason });
      events.emit("topicPaused", { topic, reason });
    } else if (change === "closed") {
      metrics.gauge("rowpost_circuit_open", { topic }, 0);
      logger.info("a topic works again", { topic });
      events.emit("topicResumed", { topic });
      if (wasAway) on.onTopicBack(topic);
    }
  }

  function measure(topic: string, tally: Tally): void {
    if (tally.sent > 0) metrics.increment("rowpost_published_total", { topic }, tally.sent);
    if (tally.notStarted > 0) metrics.increment("rowpost_not_started_total", { topic }, tally.notStarted);
    for (const scope of ["message", "destination", "connection", "unknown"] as const) {
      if (tally[scope] > 0) metrics.increment("rowpost_publish_failures_total", { topic, scope }, tally[scope]);
    }
  }

  return {
    restMs: (topic) => breaker.restMs(topic),
    learn(topic, ids, answers) {
      const results = absence.judge(topic, ids, answers);
      const tally = tallyOf(results);
      measure(topic, tally);
      learnOfBroker(topic, tally);
      learnOfTopic(topic, tally);
      return results;
    },
    notTried(topics) {
      for (const topic of new Set(topics)) breaker.report({ ...tallyOf([]), topic });
    },
  };
}

function tallyOf(results: readonly PublishResult[]): Tally {
  const tally: Tally = {
    sent: 0,
    message: 0,
    retriable: 0,
    destination: 0,
    connection: 0,
    unknown: 0,
    notStarted: 0,
    reason: "",
    retryAfterMs: undefined,
  };
  for (const result of results) {
    if (result.status !== "failed") tally[result.status] += 1;
    else {
      tally[result.scope] += 1;
      if (result.scope === "message" && result.retriable) tally.retriable += 1;
      tally.reason = `${result.code}: ${result.reason}`;
      // A time named for one message is its own backoff.
      if (result.scope === "destination") tally.retryAfterMs = result.retryAfterMs ?? tally.retryAfterMs;
    }
  }
  return tally;
}
