/**
 * The Grafana dashboard: its rows are those of the console's Overview. A panel names metrics; what
 * is asked for follows from their kind.
 */

/** Panels of a row: `of` are metrics, `by` the labels that make a line, `agg` joins gauges. */
const ROWS = [
  {
    title: "What waits",
    panels: [
      {
        title: "Oldest message that is due",
        unit: "ms",
        of: ["rowpost_oldest_pending_age_ms"],
        agg: "max",
        stat: true,
      },
      {
        title: "Oldest that is due, by topic",
        unit: "ms",
        of: ["rowpost_oldest_pending_age_ms"],
        by: ["topic"],
        agg: "max",
      },
      { title: "Waiting, by topic", unit: "short", of: ["rowpost_pending"], by: ["topic"], agg: "sum" },
      { title: "Unfinished, by state", unit: "short", of: ["rowpost_messages"], by: ["state"], agg: "sum" },
      { title: "Claimed and not settled", unit: "short", of: ["rowpost_in_flight"], by: ["instance"], agg: "sum" },
    ],
  },
  {
    title: "Throughput and results",
    panels: [
      { title: "Published, by topic", unit: "cps", of: ["rowpost_published_total"], by: ["topic"] },
      { title: "From due to receipt", unit: "ms", of: ["rowpost_delivery_delay_ms"], by: ["topic"] },
      { title: "A publish call", unit: "ms", of: ["rowpost_publish_duration_ms"], by: ["topic"] },
      { title: "Confirmations of consumers", unit: "cps", of: ["rowpost_confirmations_total"], by: ["status"] },
      { title: "Archived and deleted", unit: "cps", of: ["rowpost_archived_total", "rowpost_deleted_total"] },
    ],
  },
  {
    title: "Failures",
    panels: [
      { title: "Became failed, by topic", unit: "cps", of: ["rowpost_failed_total"], by: ["topic"] },
      {
        title: "Publishes that failed, by what it is about",
        unit: "cps",
        of: ["rowpost_publish_failures_total"],
        by: ["scope"],
      },
      { title: "Given back without being handed over", unit: "cps", of: ["rowpost_not_started_total"], by: ["topic"] },
      {
        title: "Tried once more, suspended",
        unit: "cps",
        of: ["rowpost_slow_retries_total", "rowpost_suspended_total"],
        by: ["topic"],
      },
      {
        title: "Brought back, not this relay's any more",
        unit: "cps",
        of: ["rowpost_recovered_total", "rowpost_settle_fenced_total"],
      },
      { title: "Statements that failed", unit: "cps", of: ["rowpost_database_errors_total"], by: ["statement"] },
    ],
  },
  {
    title: "Relays and shards",
    panels: [
      { title: "Relays alive", unit: "short", of: ["rowpost_relays_alive"], by: ["source"], agg: "max" },
      { title: "Shards without a relay", unit: "short", of: ["rowpost_shards_unowned"], by: ["source"], agg: "max" },
      { title: "Shards of each relay", unit: "short", of: ["rowpost_lease_shards"], by: ["instance"], agg: "sum" },
      { title: "Shards lost", unit: "cps", of: ["rowpost_lease_lost_total"], by: ["instance"] },
      {
        title: "Scan, claim, settle",
        unit: "ms",
        of: ["rowpost_scan_duration_ms", "rowpost_claim_duration_ms", "rowpost_settle_duration_ms"],
      },
    ],
  },
  {
    title: "Brokers and topics",
    panels: [
      { title: "Brokers away", unit: "short", of: ["rowpost_broker_away"], by: ["broker"], agg: "max" },
      { title: "Topics at rest", unit: "short", of: ["rowpost_circuit_open"], by: ["topic"], agg: "max" },
    ],
  },
  {
    title: "Consumers",
    panels: [
      { title: "Handled", unit: "cps", of: ["rowpost_handled_total"], by: ["consumer", "topic"] },
      {
        title: "Attempts that failed, by what it is about",
        unit: "cps",
        of: ["rowpost_handle_failures_total"],
        by: ["consumer", "scope"],
      },
      {
        title: "Dead letters, redeliveries",
        unit: "cps",
        of: ["rowpost_dead_letters_total", "rowpost_redeliveries_total"],
        by: ["consumer", "topic"],
      },
      { title: "An attempt", unit: "ms", of: ["rowpost_handle_duration_ms"], by: ["consumer"] },
      { title: "From append to handled", unit: "ms", of: ["rowpost_handling_delay_ms"], by: ["consumer"] },
      {
        title: "Oldest that is read and not finished",
        unit: "ms",
        of: ["rowpost_oldest_unfinished_age_ms"],
        by: ["consumer", "topic"],
        agg: "max",
      },
      { title: "Appended to the queue", unit: "cps", of: ["rowpost_appended_total"], by: ["topic"] },
      { title: "The inbox, by what became of it", unit: "cps", of: ["rowpost_inbox_total"], by: ["outcome"] },
      { title: "A handling by the inbox", unit: "ms", of: ["rowpost_inbox_duration_ms"], by: ["consumer"] },
    ],
  },
  {
    title: "Alerts",
    panels: [
      { title: "Alerts", unit: "short", of: ["rowpost_alerts"], by: ["rule", "state"], agg: "max" },
      { title: "Not taken by a channel", unit: "cps", of: ["rowpost_alert_send_failures_total"], by: ["channel"] },
    ],
  },
  {
    title: "Console",
    panels: [
      {
        title: "Message tables that can be read",
        unit: "short",
        of: ["rowpost_table_readable"],
        by: ["source"],
        agg: "min",
      },
      { title: "Requests", unit: "reqps", of: ["rowpost_http_requests_total"], by: ["route", "status"] },
      { title: "From a request to its answer", unit: "ms", of: ["rowpost_http_duration_ms"], by: ["route"] },
      { title: "Searches, by why they stopped", unit: "cps", of: ["rowpost_searches_total"], by: ["stopped"] },
      { title: "What the audit is about", unit: "cps", of: ["rowpost_audit_total"], by: ["action", "result"] },
    ],
  },
];

/** Metrics that the dashboard does not show, and why. */
export const NOT_SHOWN = {};

/** Names of the metrics that panels show. */
export const SHOWN = new Set(ROWS.flatMap(({ panels }) => panels.flatMap(({ of }) => of)));

/** Labels that Prometheus adds to each target. */
const OF_THE_TARGET = ["job", "instance"];

/** Panels that name a label which their metric does not have. */
export function wrongLabels(metrics) {
  return ROWS.flatMap(({ panels }) => panels).flatMap(({ by = [], of, title }) =>
    by
      .filter((label) => !OF_THE_TARGET.includes(label) && !of.some((name) => metrics[name]?.labels.includes(label)))
      .map((label) => `the panel "${title}" asks for the label ${label}, which none of its metrics has`),
  );
}

const DATASOURCE = { type: "prometheus", uid: "$datasource" };

/** What is asked for a metric: a rate, the median and the slowest hundredth, or the value. */
function queriesOf(name, { kind, labels }, { agg, by = [] }) {
  const own = by.filter((label) => OF_THE_TARGET.includes(label) || labels.includes(label));
  const source = labels.includes("source") ? ', source=~"$source"' : "";
  const where = `{job=~"$job"${source}}`;
  const said = own.map((label) => `{{${label}}}`).join(" ");
  const word = name.replace(/^rowpost_|(_duration)?_ms$|_total$/g, "").replaceAll("_", " ");
  const legend = [word, said].filter((part) => part !== "").join(": ");
  const joined = own.length === 0 ? "" : ` by (${own.join(", ")})`;
  if (kind === "gauge") return [{ expr: `${agg}${joined} (${name}${where})`, legend }];
  if (kind === "counter") return [{ expr: `sum${joined} (rate(${name}${where}[$__rate_interval]))`, legend }];
  const buckets = `sum by (${["le", ...own].join(", ")}) (rate(${name}_bucket${where}[$__rate_interval]))`;
  return [0.5, 0.99].map((part) => ({
    expr: `histogram_quantile(${part}, ${buckets})`,
    legend: `${part * 100} % ${legend}`,
  }));
}

function panelOf(panel, id, gridPos, metrics) {
  const queries = panel.of.flatMap((name) => queriesOf(name, metrics[name], panel));
  return {
    id,
    type: panel.stat ? "stat" : "timeseries",
    title: panel.title,
    description: panel.of.map((name) => `${name}: ${metrics[name].help}`).join("\n\n"),
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
    options: panel.stat
      ? { reduceOptions: { calcs: ["lastNotNull"] } }
      : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

const HEIGHT = 8;
const WIDTH = 8;
const IN_A_LINE = 24 / WIDTH;

/** Rows with their panels, three in a line. */
function panelsOf(metrics) {
  const made = [];
  let y = 0;
  for (const { panels, title } of ROWS) {
    made.push({
      id: made.length + 1,
      type: "row",
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    });
    y += 1;
    for (const [index, panel] of panels.entries()) {
      const place = {
        x: (index % IN_A_LINE) * WIDTH,
        y: y + Math.floor(index / IN_A_LINE) * HEIGHT,
        w: WIDTH,
        h: HEIGHT,
      };
      made.push(panelOf(panel, made.length + 1, place, metrics));
    }
    y += Math.ceil(panels.length / IN_A_LINE) * HEIGHT;
  }
  return made;
}

function choice(name, label, metric) {
  const query = `label_values(${metric}, ${name})`;
  return {
    name,
    label,
    type: "query",
    datasource: DATASOURCE,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: ["All"], value: ["$__all"] },
  };
}

/** The dashboard, as Grafana imports it. */
export function dashboardOf(metrics) {
  return {
    uid: "rowpost",
    title: "rowpost",
    tags: ["rowpost"],
    schemaVersion: 38,
    editable: true,
    time: { from: "now-6h", to: "now" },
    refresh: "30s",
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {} },
        choice("job", "Job", "rowpost_build_info"),
        choice("source", "Source", "rowpost_table_readable"),
      ],
    },
    panels: panelsOf(metrics),
  };
}
