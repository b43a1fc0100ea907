/**
 * The metrics port: named measurements for any collector. Silent by default; metrics-registry.ts
 * keeps the numbers.
 *
 * All durations are milliseconds and say so in their name.
 */

/** A metric: its kind, the help text of the exposition, and its labels. */
export interface MetricDefinition {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * All metrics. The relay, the daemon's exposition, the documentation and the tests take the names
 * from here.
 */
export const METRICS = {
  rowpost_published_total: {
    kind: "counter",
    help: "Messages that the broker acknowledged with its receipt.",
    labels: ["topic"],
  },
  rowpost_publish_failures_total: {
    kind: "counter",
    help: "Publishes that failed, by what the failure is about: message, destination, connection or unknown.",
    labels: ["topic", "scope"],
  },
  rowpost_not_started_total: {
    kind: "counter",
    help: "Messages that a publish call gave back without handing them over.",
    labels: ["topic"],
  },
  rowpost_publish_duration_ms: {
    kind: "histogram",
    help: "Time of one publish call of the broker adapter.",
    labels: ["topic"],
  },
  rowpost_delivery_delay_ms: {
    kind: "histogram",
    help: "Time from when a message could first be sent to its receipt.",
    labels: ["topic"],
  },
  rowpost_in_flight: {
    kind: "gauge",
    help: "Messages claimed and not yet settled by this relay instance.",
    labels: [],
  },
  rowpost_pending: { kind: "gauge", help: "Messages that wait to be sent.", labels: ["topic"] },
  rowpost_oldest_pending_age_ms: {
    kind: "gauge",
    help: "How long the oldest message that could be sent has waited.",
    labels: ["topic"],
  },
  rowpost_messages: {
    kind: "gauge",
    help: "Messages in the local message table by unfinished state, as of the last housekeeping round.",
    labels: ["topic", "state"],
  },
  rowpost_lease_shards: { kind: "gauge", help: "Shards that this relay instance holds.", labels: [] },
  rowpost_lease_lost_total: {
    kind: "counter",
    help: "Shards that this instance lost before it gave them away.",
    labels: [],
  },
  rowpost_scan_duration_ms: { kind: "histogram", help: "Time of one scan for waiting messages.", labels: [] },
  rowpost_claim_duration_ms: { kind: "histogram", help: "Time of one claim of a batch.", labels: [] },
  rowpost_settle_duration_ms: { kind: "histogram", help: "Time of one settle of a batch.", labels: [] },
  rowpost_settle_fenced_total: {
    kind: "counter",
    help: "Outcomes that were not written because the message was no longer this instance's.",
    labels: ["topic"],
  },
  rowpost_recovered_total: {
    kind: "counter",
    help: "Messages brought back from sending to pending because nobody watched them.",
    labels: [],
  },
  rowpost_failed_total: {
    kind: "counter",
    help: "Messages that became failed: not sendable, or attempts used up.",
    labels: ["topic"],
  },
  rowpost_slow_retries_total: {
    kind: "counter",
    help: "Failed messages that were given another try.",
    labels: ["topic"],
  },
  rowpost_suspended_total: { kind: "counter", help: "Messages that became suspended.", labels: ["topic"] },
  rowpost_archived_total: { kind: "counter", help: "Finished messages moved to the archive.", labels: [] },
  rowpost_deleted_total: { kind: "counter", help: "Finished or archived messages deleted.", labels: [] },
  rowpost_confirmations_total: {
    kind: "counter",
    help: "Reports of consumers that the daemon took, by what became of them.",
    labels: ["status"],
  },
  rowpost_circuit_open: { kind: "gauge", help: "1 while the topic's circuit breaker is open.", labels: ["topic"] },
  rowpost_broker_away: {
    kind: "gauge",
    help: "1 while everything for this broker waits until it is back.",
    labels: ["broker"],
  },
  rowpost_database_errors_total: {
    kind: "counter",
    help: "Statements of the relay that failed.",
    labels: ["statement"],
  },
  rowpost_appended_total: {
    kind: "counter",
    help: "Messages appended to the queue; those of a transaction that is rolled back later too.",
    labels: ["topic"],
  },
  rowpost_handled_total: {
    kind: "counter",
    help: "Messages that a consumer has handled, which is committed.",
    labels: ["consumer", "topic"],
  },
  rowpost_handle_failures_total: {
    kind: "counter",
    help: "Attempts of a consumer that failed, by what the failure is about: message, or connection (what its handler calls is away).",
    labels: ["consumer", "topic", "scope"],
  },
  rowpost_handle_duration_ms: {
    kind: "histogram",
    help: "Time of one attempt of a consumer at a message.",
    labels: ["consumer", "topic"],
  },
  rowpost_handling_delay_ms: {
    kind: "histogram",
    help: "Time from the append of a message of the queue until it was handled; not of delayed or failed ones.",
    labels: ["consumer", "topic"],
  },
  rowpost_oldest_unfinished_age_ms: {
    kind: "gauge",
    help: "Age of the oldest message of the queue that this process has read for its consumer and not finished.",
    labels: ["consumer", "topic"],
  },
  rowpost_redeliveries_total: {
    kind: "counter",
    help: "Attempts of a consumer at messages that it had tried before.",
    labels: ["consumer", "topic"],
  },
  rowpost_dead_letters_total: {
    kind: "counter",
    help: "Messages that a consumer gave up: dead letters, or parked.",
    labels: ["consumer", "topic"],
  },
  rowpost_inbox_total: {
    kind: "counter",
    help: "Messages given to the inbox, by what became of them: handled, duplicate or failed.",
    labels: ["consumer", "outcome"],
  },
  rowpost_inbox_duration_ms: {
    kind: "histogram",
    help: "Time of one handling by the inbox, with its handler.",
    labels: ["consumer"],
  },
  rowpost_http_requests_total: {
    kind: "counter",
    help: "Requests that the console answered, by the template of their route.",
    labels: ["route", "method", "status"],
  },
  rowpost_http_duration_ms: {
    kind: "histogram",
    help: "Time of the console from a request to its answer.",
    labels: ["route"],
  },
  rowpost_searches_total: {
    kind: "counter",
    help: "Searches of the console, by why they stopped: end, limit (the page is full) or budget (the time is up).",
    labels: ["stopped"],
  },
  rowpost_audit_total: {
    kind: "counter",
    help: "Requests of the console that its audit is about: done, denied, conflict (too late) or failed.",
    labels: ["action", "result"],
  },
  rowpost_alerts: {
    kind: "gauge",
    help: "Alerts by rule and state, firing or waiting, from the process that evaluates them; 0 from the others.",
    labels: ["source", "rule", "state"],
  },
  rowpost_alert_send_failures_total: {
    kind: "counter",
    help: "Attempts to tell a channel of alerts that it did not take.",
    labels: ["channel"],
  },
  rowpost_table_readable: {
    kind: "gauge",
    help: "1 while the console can read the message table.",
    labels: ["source"],
  },
  rowpost_relays_alive: {
    kind: "gauge",
    help: "Relays of the message table that give signs of life; NaN while it cannot be read.",
    labels: ["source"],
  },
  rowpost_shards_unowned: {
    kind: "gauge",
    help: "Shards that no living relay holds; NaN while the table cannot be read.",
    labels: ["source"],
  },
} as const;

/** Name of a metric. */
export type MetricName = keyof typeof METRICS;
type NamesOf<Kind extends MetricDefinition["kind"]> = {
  [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never;
}[MetricName];
/** Names for {@link Metrics.increment}. */
export type CounterName = NamesOf<"counter">;
/** Names for {@link Metrics.gauge}. */
export type GaugeName = NamesOf<"gauge">;
/** Names for {@link Metrics.observe}. */
export type HistogramName = NamesOf<"histogram">;
/** Labels required by a metric's measurements. */
export type MetricLabels<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]["labels"][number], string>>;

/**
 * Takes measurements. Called on the hot path, for each batch or message: must be quick and must not
 * throw.
 */
export interface Metrics {
  /** Adds to a counter; `by` defaults to 1. */
  increment<Name extends CounterName>(name: Name, labels: MetricLabels<Name>, by?: number): void;
  /** Sets a gauge. */
  gauge<Name extends GaugeName>(name: Name, labels: MetricLabels<Name>, value: number): void;
  /** Adds one observation to a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: MetricLabels<Name>, value: number): void;
}

/** The default: measures nothing. */
export const silentMetrics: Metrics = { increment: ignore, gauge: ignore, observe: ignore };

function ignore(): void {}
