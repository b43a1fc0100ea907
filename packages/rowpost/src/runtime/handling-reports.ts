/** Counts, times and events of one consumer, of the queue or of a broker. */
import { checkOptions } from "./check-options.ts";
import { createEventEmitter, type Listener } from "./events.ts";
import type { Logger } from "./logger.ts";
import { type Metrics, silentMetrics } from "./metrics.ts";

/** A message in an event of a consumer. */
export interface HandledMessageName {
  /** Its topic; "" when unknown. */
  readonly topic: string;
  /** Id in the broker or the queue. */
  readonly id: string | undefined;
  /** Message type. */
  readonly type: string | undefined;
  /** Message key. */
  readonly key: string | undefined;
}

/** A handled message: its effect is committed. */
export interface HandledEvent {
  /** The message. */
  readonly message: HandledMessageName;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Of this attempt, in milliseconds. */
  readonly durationMs: number;
}

/** An attempt that failed. */
export interface FailedEvent extends HandledEvent {
  /** The handler's error, or why it could not be called. */
  readonly error: unknown;
  /** True: the message is given up, dead or parked. False: it comes again. */
  readonly isLast: boolean;
}

/** Events of a consumer, by name as with `relay.on`. */
export interface HandlingEvents {
  /** A message was handled and its record committed. Not emitted for duplicates. */
  readonly handled: HandledEvent;
  /** An attempt failed and counts. Not emitted when a called service is away. */
  readonly failed: FailedEvent;
}

/** Listeners of a consumer, from its first message on. They must be quick; a throw is logged. */
export type HandlingListeners = {
  readonly [Name in keyof HandlingEvents]?: Listener<HandlingEvents[Name]> | undefined;
};

export interface HandlingReports {
  /** False: no metrics and no listeners. */
  readonly isHeard: boolean;
  /** `delayMs`: time since the append, if known. */
  handled(event: HandledEvent, delayMs?: number): void;
  failed(event: FailedEvent): void;
  away(topic: string): void;
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
