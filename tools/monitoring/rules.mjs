/**
 * Prometheus rules: those of docs/alerts.md that metrics can express, with the same figures, and
 * what only metrics tell.
 */

/** `5m`, `90s`, as Prometheus writes durations. */
function durationOf(ms) {
  for (const [unit, length] of Object.entries({ h: 3_600_000, m: 60_000, s: 1_000 })) {
    if (ms % length === 0) return `${ms / length}${unit}`;
  }
  throw new Error(`${ms} ms are no whole seconds`);
}

/**
 * Is a counter higher than a window ago? A counter that is new begins at what was counted, which
 * `increase` does not see.
 */
function grown(counter, by, window) {
  return `sum by (${by}) (increase(${counter}[${window}]) > 0 or (${counter} unless ${counter} offset ${window})) > 0`;
}

/** The table and its relays, as a console sees them. */
function relayRules(defaults) {
  return {
    database: [
      {
        alert: "RowpostTableUnreadable",
        expr: "max by (job, source) (rowpost_table_readable) == 0",
        forMs: defaults.database.forMs,
        severity: "critical",
        summary: "The message table of {{ $labels.source }} cannot be read",
        description: "The database does not answer the console, or the tables do not fit its version.",
        firstStep: "rowpost doctor",
      },
    ],
    schema: "RowpostTableUnreadable: that it is the schema stands in no metric",
    "no-relay": [
      {
        alert: "RowpostNoRelay",
        expr: "max by (job, source) (rowpost_relays_alive) == 0",
        forMs: defaults["no-relay"].forMs,
        severity: "critical",
        summary: "No relay of {{ $labels.source }} is alive",
        description: "Nothing of this table is sent until one runs.",
        firstStep: "rowpost status, then start a relay: rowpost relay",
      },
    ],
    "shard-unowned": [
      {
        alert: "RowpostShardUnowned",
        // Without a relay it is RowpostNoRelay.
        expr: "max by (job, source) (rowpost_shards_unowned) > 0 and max by (job, source) (rowpost_relays_alive) > 0",
        forMs: defaults["shard-unowned"].forMs,
        severity: "critical",
        summary: "{{ $value }} shards of {{ $labels.source }} belong to no relay",
        description: "Their messages wait although a relay runs.",
        firstStep: "rowpost status, and the relays' logs",
      },
    ],
  };
}

/** Brokers and topics, as relays see them. */
function brokerRules(defaults) {
  return {
    "broker-away": [
      {
        alert: "RowpostBrokerAway",
        expr: "max by (job, broker) (rowpost_broker_away) == 1",
        forMs: defaults["broker-away"].overMs,
        severity: "critical",
        summary: "The broker {{ $labels.broker }} is away",
        description: "Says a relay of {{ $labels.job }}. Messages wait and lose no attempt.",
        firstStep: "rowpost status, then bring the broker back, or mend its address or login",
      },
    ],
    "topic-resting": [
      {
        alert: "RowpostTopicResting",
        expr: "max by (job, topic) (rowpost_circuit_open) == 1",
        forMs: defaults["topic-resting"].forMs,
        severity: "warning",
        summary: "The topic {{ $labels.topic }} takes nothing",
        description: "Its messages fail one after the other, says a relay of {{ $labels.job }}; the others go on.",
        firstStep: "rowpost list --topic '{{ $labels.topic }}'",
      },
    ],
  };
}

function failedRules({ failed }) {
  const window = durationOf(failed.windowMs);
  return {
    failed: [
      {
        alert: "RowpostFailed",
        expr: grown("rowpost_failed_total", "job, topic", window),
        severity: "warning",
        summary: `Messages of {{ $labels.topic }} have failed within ${window}`,
        description: "Nobody sends them again but the slow retry; later ones of their ordering keys wait.",
        firstStep: "rowpost list --state failed --topic '{{ $labels.topic }}'",
      },
      {
        alert: "RowpostManyFailed",
        expr: `max by (job, topic) (rowpost_messages{state="failed"}) >= ${failed.criticalFrom}`,
        severity: "critical",
        summary: "{{ $value }} messages of {{ $labels.topic }} are failed",
        description: "Nobody sends them again but the slow retry; later ones of their ordering keys wait.",
        firstStep: "rowpost list --state failed --topic '{{ $labels.topic }}'",
      },
    ],
  };
}

function dueRules(defaults) {
  const due = defaults["oldest-due"];
  const age = "max by (job, topic) (rowpost_oldest_pending_age_ms)";
  const dueTexts = {
    summary: "A message of {{ $labels.topic }} is due for {{ $value | humanizeDuration }}",
    description: "The relay is behind, or something holds this message.",
    firstStep: "rowpost list --state pending --topic '{{ $labels.topic }}' --limit 5, then rowpost show ID",
  };
  return {
    // In seconds, as humanizeDuration takes them.
    "oldest-due": [
      {
        alert: "RowpostOldestDue",
        expr: `${age} / 1000 > ${due.overMs / 1000} <= ${due.criticalOverMs / 1000}`,
        severity: "warning",
        ...dueTexts,
      },
      {
        alert: "RowpostOldestDueLong",
        expr: `${age} / 1000 > ${due.criticalOverMs / 1000}`,
        severity: "critical",
        ...dueTexts,
      },
    ],
  };
}

/** Rules by those of the alerts; a text says why there is none. */
function rulesByName(defaults) {
  return {
    ...relayRules(defaults),
    ...brokerRules(defaults),
    ...failedRules(defaults),
    ...dueRules(defaults),
  };
}

/** Of them no metric but this tells: as the process that evaluates alerts says. */
function evaluated(alert, severity, names) {
  return {
    alert,
    severity,
    expr: `max by (job, source, rule) (rowpost_alerts{${names}, state="firing"}) > 0`,
    summary: "The alert {{ $labels.rule }} of {{ $labels.source }} fires",
    description: "As a process with --alerts says; it tells its channels of it too.",
    firstStep: "rowpost alert list",
  };
}

/** Rules of the alerts that are no more than a note. */
const NOTES = ["suspension", "queue-paused"];

/** What no rule of the alerts is about. */
const MORE = [
  {
    alert: "RowpostAbsent",
    // A relay has the one, a console the other.
    expr: "absent(rowpost_lease_shards) and absent(rowpost_table_readable)",
    forMs: 300_000,
    severity: "critical",
    summary: "No process of rowpost is heard of",
    description: "Neither a relay nor a console gives metrics: who does not run tells nobody.",
    firstStep: "the processes and their logs, then what Prometheus says of its targets",
  },
  {
    alert: "RowpostAlertsNotTaken",
    expr: grown("rowpost_alert_send_failures_total", "job, channel", "15m"),
    severity: "warning",
    summary: "The channel {{ $labels.channel }} does not take alerts",
    description: "Whoever listens there may not hear of what is wrong.",
    firstStep: "rowpost alert test '{{ $labels.channel }}' --alerts FILE",
  },
  {
    alert: "RowpostSettleFenced",
    expr: grown("rowpost_settle_fenced_total", "job, topic", "10m"),
    severity: "warning",
    summary: "Outcomes of {{ $labels.topic }} were not written: the messages were another relay's by then",
    description: "They are sent twice. A lease is too short, or a process stands still for longer than it.",
    firstStep: "the relays' logs: an outcome was not written",
  },
];

/** The group as Prometheus reads it, and which alerts it names that there are not. */
export function prometheusRules(defaults) {
  const byName = rulesByName(defaults);
  const unknown = [...Object.keys(byName), ...NOTES].filter((name) => defaults[name] === undefined);
  const problems = unknown.map((name) => `there is no alert ${name} any more`);
  const others = [
    evaluated("RowpostAlert", "warning", `rule!~"${[...Object.keys(byName), ...NOTES].join("|")}"`),
    evaluated("RowpostNote", "info", `rule=~"${NOTES.join("|")}"`),
  ];
  const rules = [...Object.values(byName).filter(Array.isArray).flat(), ...others, ...MORE].map(
    ({ alert, description, expr, firstStep, forMs = 0, severity, summary }) => ({
      alert,
      expr,
      ...(forMs === 0 ? {} : { for: durationOf(forMs) }),
      labels: { severity },
      annotations: { summary, description, first_step: firstStep },
    }),
  );
  return { groups: [{ name: "rowpost", rules }], problems };
}
