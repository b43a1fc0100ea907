/**
 * The metrics port: what the library measures, by name, for whatever collects it. Silent by
 * default; {@link createMetricsRegistry} keeps the numbers in memory and prints them in the
 * Prometheus text format.
 *
 * All durations are milliseconds and say so in their name.
 */

/**
 * What one metric is: its kind, the sentence that the exposition prints, and the labels that each
 * measurement gives.
 */
export interface MetricDefinition {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * Every metric there is. The relay, the daemon's exposition, the documentation and the tests take
 * the names from here.
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
  rowpost_operations: {
    kind: "gauge",
    help: "Changes of many messages that are under way, by state: running or paused.",
    labels: ["source", "state"],
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
/** The labels that a metric's measurements must give. */
export type MetricLabels<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]["labels"][number], string>>;

/**
 * Takes measurements. Called on the hot path, for each batch or message: must be quick and must not
 * throw.
 */
export interface Metrics {
  /** Adds to a counter; 1 when `by` is left out. */
  increment<Name extends CounterName>(name: Name, labels: MetricLabels<Name>, by?: number): void;
  /** Sets a gauge. */
  gauge<Name extends GaugeName>(name: Name, labels: MetricLabels<Name>, value: number): void;
  /** Adds one observation to a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: MetricLabels<Name>, value: number): void;
}

/** The default: measures nothing. */
export const silentMetrics: Metrics = { increment: ignore, gauge: ignore, observe: ignore };

function ignore(): void {}

/** Options of {@link createMetricsRegistry}. */
export interface MetricsRegistryOptions {
  /**
   * Series (combinations of label values) kept for each metric; the rest go together into one
   * series whose label values are all `_other`. Default 1,000. Topics are data: without a bound, a
   * program that makes up topic names fills the memory of its own relay and of the Prometheus
   * server.
   */
  readonly maxSeriesPerMetric?: number | undefined;
  /** Upper bounds of the histogram buckets. Default: 1, 2, 5, 10, … to 10,000 and 30,000. */
  readonly bucketsMs?: readonly number[] | undefined;
}

/** Bucket bounds that tell a local socket (1 ms) from a full second, and that from a deadline. */
const DEFAULT_BUCKETS_MS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/** Metrics kept in memory. */
export interface MetricsRegistry extends Metrics {
  /**
   * Current value of a counter or gauge, observations of a histogram; 0 when there was none. For
   * tests and for `rowpost status`.
   */
  value<Name extends MetricName>(name: Name, labels: MetricLabels<Name>): number;
  /** The Prometheus text format, version 0.0.4. Metrics that were never measured are left out. */
  exposition(): string;
}

interface Series {
  readonly labelValues: readonly string[];
  /** Counter or gauge: its value. Histogram: the sum. */
  value: number;
  /**
   * Histogram only: observations that fell into each bucket, the last one being +Inf. Not
   * cumulative until printed.
   */
  readonly buckets: number[];
}

const OTHER = "_other";

/**
 * A registry in memory. A measurement is one look-up in a map by the labels' values and one
 * addition. Measured on Node 20: 30 ns for a counter and 40 ns for a histogram with one label, 130
 * ns with two (their values are joined to one key).
 */
export function createMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const { maxSeriesPerMetric = 1_000, bucketsMs = DEFAULT_BUCKETS_MS } = options;
  const families = new Map<MetricName, Map<string, Series>>();

  function seriesOf(name: MetricName, labels: Readonly<Record<string, string>>): Series {
    let family = families.get(name);
    if (family === undefined) {
      family = new Map();
      families.set(name, family);
    }
    const labelNames: readonly string[] = METRICS[name].labels;
    const key = seriesKey(labelNames, labels);
    const found = family.get(key);
    if (found !== undefined) return found;
    const full = family.size >= maxSeriesPerMetric;
    const labelValues = labelNames.map((label) => (full ? OTHER : (labels[label] ?? "")));
    const storedKey = full ? labelValues.join("\u0000") : key;
    const overflow = family.get(storedKey);
    if (overflow !== undefined) return overflow;
    const buckets = METRICS[name].kind === "histogram" ? new Array<number>(bucketsMs.length + 1).fill(0) : [];
    const series: Series = { labelValues, value: 0, buckets };
    family.set(storedKey, series);
    return series;
  }

  return {
    increment: (name, labels, by = 1) => {
      seriesOf(name, labels).value += by;
    },
    gauge: (name, labels, value) => {
      seriesOf(name, labels).value = value;
    },
    observe: (name, labels, value) => {
      const series = seriesOf(name, labels);
      series.value += value;
      let index = 0;
      while (index < bucketsMs.length && value > (bucketsMs[index] ?? 0)) index += 1;
      series.buckets[index] = (series.buckets[index] ?? 0) + 1;
    },
    value: (name, labels) => {
      const series = families.get(name)?.get(seriesKey(METRICS[name].labels, labels));
      if (series === undefined) return 0;
      return METRICS[name].kind === "histogram" ? sum(series.buckets) : series.value;
    },
    exposition: () => printFamilies(families, bucketsMs),
  };
}

function seriesKey(labelNames: readonly string[], labels: Readonly<Record<string, string>>): string {
  let key = "";
  for (let index = 0; index < labelNames.length; index += 1) {
    const value = labels[labelNames[index] ?? ""] ?? "";
    key = index === 0 ? value : `${key}\u0000${value}`;
  }
  return key;
}

function printFamilies(
  families: ReadonlyMap<MetricName, ReadonlyMap<string, Series>>,
  bucketsMs: readonly number[],
): string {
  const lines: string[] = [];
  for (const [name, family] of families) {
    const { kind, help, labels } = METRICS[name];
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
    for (const series of family.values()) {
      const pairs = labels.map((label, index) => `${label}="${escapeLabel(series.labelValues[index] ?? "")}"`);
      if (kind === "histogram") printHistogram(lines, name, pairs, series, bucketsMs);
      else lines.push(`${name}${braces(pairs)} ${series.value}`);
    }
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

function printHistogram(
  lines: string[],
  name: string,
  pairs: readonly string[],
  series: Series,
  bucketsMs: readonly number[],
): void {
  let cumulated = 0;
  for (const [index, count] of series.buckets.entries()) {
    cumulated += count;
    lines.push(`${name}_bucket${braces([...pairs, `le="${bucketsMs[index] ?? "+Inf"}"`])} ${cumulated}`);
  }
  lines.push(`${name}_sum${braces(pairs)} ${series.value}`, `${name}_count${braces(pairs)} ${cumulated}`);
}

function braces(pairs: readonly string[]): string {
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** The three characters that the text format escapes in a label value. */
function escapeLabel(value: string): string {
  return value.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
