/**
 * Counts, times and events of one consumer, of the queue or of a broker: the one place that knows
 * which of them belong to what became of a message.
 */
import { checkOptions } from "./check-options.ts";
import { createEventEmitter, type Listener } from "./events.ts";
import type { Logger } from "./logger.ts";
import { type Metrics, silentMetrics } from "./metrics.ts";

/** A message in an event of a consumer. */
export interface HandledMessageName {
  /** Where it came from; "" where nobody says. */
  readonly topic: string;
  /** What the broker or the queue calls it. */
  readonly id: string | undefined;
  /** Message type. */
  readonly type: string | undefined;
  /** Message key. */
  readonly key: string | undefined;
}

/** A message that was handled: its effect is committed. */
export interface HandledEvent {
  /** Which one. */
  readonly message: HandledMessageName;
  /** 1 for the first. */
  readonly attempt: number;
  /** Of this attempt, in milliseconds. */
  readonly durationMs: number;
}

/** An attempt that failed. */
export interface FailedEvent extends HandledEvent {
  /** What the handler threw, or why it could not be called. */
  readonly error: unknown;
  /** True: the message is given up, a dead letter or parked. False: it comes again. */
  readonly isLast: boolean;
}

/** What a consumer tells of its messages, by name as with `relay.on`. */
export interface HandlingEvents {
  /** A message was handled, and what says so is committed. Not for what was handled before. */
  readonly handled: HandledEvent;
  /** An attempt failed and counts. Not for what the handler calls being away. */
  readonly failed: FailedEvent;
}

/** Listeners of a consumer, from its first message on. They must be quick; a throw is logged. */
export type HandlingListeners = {
  readonly [Name in keyof HandlingEvents]?: Listener<HandlingEvents[Name]> | undefined;
};

export interface HandlingReports {
  /** False: nothing is measured, and nobody listens. */
  readonly isHeard: boolean;
  /** `delayMs`: since the message was appended, where that is known. */
  handled(event: HandledEvent, delayMs?: number): void;
  failed(event: FailedEvent): void;
  /** What the handler calls is away: uncounted for the message. */
  away(topic: string): void;
  /** Age of the oldest message that this consumer has read and not finished. */
  oldest(topic: string, ageMs: number): void;
}

export interface HandlingReportsOptions {
  readonly on?: HandlingListeners | undefined;
  readonly consumer: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Throws `ConfigurationError`. */
export function checkListeners(what: string, on: HandlingListeners | undefined): void {
  if (on !== undefined) checkOptions(`${what}: on`, on, { handled: "function", failed: "function" });
}

export function createHandlingReports(options: HandlingReportsOptions): HandlingReports {
  const { consumer, metrics, logger, on = {} } = options;
  const events = createEventEmitter<HandlingEvents>({ logger });
  if (on.handled !== undefined) events.on("handled", on.handled);
  if (on.failed !== undefined) events.on("failed", on.failed);

  function tried({ message: { topic }, attempt, durationMs }: HandledEvent): void {
    metrics.observe("rowpost_handle_duration_ms", { consumer, topic }, durationMs);
    if (attempt > 1) metrics.increment("rowpost_redeliveries_total", { consumer, topic });
  }

  return {
    isHeard: metrics !== silentMetrics || on.handled !== undefined || on.failed !== undefined,
    handled(event, delayMs) {
      const { topic } = event.message;
      tried(event);
      metrics.increment("rowpost_handled_total", { consumer, topic });
      if (delayMs !== undefined) metrics.observe("rowpost_handling_delay_ms", { consumer, topic }, delayMs);
      events.emit("handled", event);
    },
    failed(event) {
      const { topic } = event.message;
      tried(event);
      metrics.increment("rowpost_handle_failures_total", { consumer, topic, scope: "message" });
      if (event.isLast) metrics.increment("rowpost_dead_letters_total", { consumer, topic });
      events.emit("failed", event);
    },
    away(topic) {
      metrics.increment("rowpost_handle_failures_total", { consumer, topic, scope: "connection" });
    },
    oldest(topic, ageMs) {
      metrics.gauge("rowpost_oldest_unfinished_age_ms", { consumer, topic }, ageMs);
    },
  };
}
