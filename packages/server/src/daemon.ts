/** A relay as a process, until a signal or once until nothing is due. */
import {
  type ConfirmedType,
  createMetricsRegistry,
  createOutbox,
  createRelay,
  type DrainOptions,
  type DrainReport,
  type Logger,
  type MetricsRegistry,
  type Relay,
  type RelayOptions,
} from "rowpost";
import type { Consumption } from "rowpost/consume";
import type { AlertConfig } from "./alerts/config.ts";
import { type RunningAlerts, startAlerts } from "./alerts/start.ts";
import { type ConfirmEndpoint, createConfirmEndpoint } from "./confirm-endpoint.ts";
import { type ConfirmSource, readConfirmTopic } from "./confirm-topic/index.ts";
import type { ExitCode } from "./context.ts";
import { CommandFailure } from "./failure.ts";
import { serveHealth } from "./health-server.ts";
import type { HttpAddress } from "./http-address.ts";
import { aborted, OUTPUT_CLOSED, watchSignals } from "./signals.ts";

/** Options of {@link runRelay}. */
export interface DaemonOptions {
  readonly relay: RelayOptions & { readonly logger: Logger };
  readonly databaseLabel: string;
  readonly brokerLabel: string;
  /** Drain due messages for at most this long, then end. Undefined: run until a signal. */
  readonly once: { readonly timeoutMs: number; readonly untilEmpty: boolean } | undefined;
  readonly http: HttpAddress | undefined;
  readonly confirm: ConfirmWays;
  readonly alerts?: AlertConfig | undefined;
  /** Runs in the same process. Opened before the relay starts. */
  readonly beside?:
    | ((parts: {
        readonly relay: Relay;
        readonly metrics: MetricsRegistry;
        readonly alerts: AlertConfig | undefined;
      }) => Promise<Beside>)
    | undefined;
}

export interface Beside {
  /** Aborted with an error when it cannot go on: the relay stops too and throws the error. */
  readonly failed: AbortSignal;
  /** Called as soon as the relay is told to stop, while it drains. */
  close(): Promise<void>;
}

export interface ConfirmWays {
  readonly types: readonly ConfirmedType[];
  readonly token: string | undefined;
  readonly source: ConfirmSource | undefined;
}

const SUMMARY_MS = 60_000;

/**
 * Runs a relay until SIGTERM, SIGINT or a closed standard output, or with `once` until nothing is
 * due. Returns 0 if everything was settled (with `once`: sent), 3 if messages wait for their next
 * attempt or have failed, else 1. Throws if the table does not match the layout, the database is
 * away, or the broker refuses us; with `once` also if the broker is away.
 */
export async function runRelay(options: DaemonOptions): Promise<ExitCode> {
  const { logger } = options.relay;
  // First, because it rejects invalid options.
  const metrics = createMetricsRegistry();
  const relay = createRelay({ ...options.relay, metrics });
  const { endpoint: confirm, readTopic } = confirmations(options, metrics);
  const http = options.http && (await serveHealth({ address: options.http, metrics, relay, confirm }));
  if (http !== undefined) {
    logger.info("serves /metrics, /livez and /readyz", { address: http.address, confirmations: confirm !== undefined });
  }
  const signals = watchSignals((name) =>
    logger.error("second signal: ending without waiting for messages in flight", { signal: name }),
  );
  let topic: Consumption | undefined;
  let beside: OpenBeside | undefined;
  let alerts: RunningAlerts | undefined;
  try {
    beside =
      options.beside && (await openBeside(options.beside({ relay, metrics, alerts: options.alerts }), signals.signal));
    topic = readTopic?.();
    alerts = startRelayAlerts(options, metrics);
    const signal = beside?.signal ?? signals.signal;
    // Runs while the relay drains, so a channel that does not answer costs no extra time.
    void aborted(signal).then(() => alerts?.close().catch(() => undefined));
    const code =
      options.once === undefined
        ? await runUntilSignal(relay, options, signal)
        : await drainOnce(relay, options, { ...options.once, signal });
    beside?.failed.throwIfAborted();
    return code;
  } finally {
    await alerts?.close();
    await topic?.close();
    await http?.close();
    await beside?.close();
    signals.end();
  }
}

interface OpenBeside extends Beside {
  /** Aborted by signals of the process and on failure. */
  readonly signal: AbortSignal;
}

/** Closed once, by the stop signal or the end of the relay. */
async function openBeside(opening: Promise<Beside>, stop: AbortSignal): Promise<OpenBeside> {
  const opened = await opening;
  const signal = AbortSignal.any([stop, opened.failed]);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= opened.close();
    return closing;
  };
  // The caller waiting for the end gets the error.
  void aborted(signal).then(() => close().catch(() => undefined));
  return { failed: opened.failed, signal, close };
}

function startRelayAlerts(
  { alerts, relay: { database, layout, logger } }: DaemonOptions,
  metrics: MetricsRegistry,
): RunningAlerts | undefined {
  return alerts && startAlerts({ sources: [{ name: "main", database, layout }], config: alerts, logger, metrics });
}

function confirmations(
  { relay: { database, layout, logger }, confirm: { source, token, types } }: DaemonOptions,
  metrics: MetricsRegistry,
): { readonly endpoint: ConfirmEndpoint | undefined; readonly readTopic: (() => Consumption) | undefined } {
  const parts = { outbox: createOutbox({ database, layout, types }), metrics, logger };
  return {
    endpoint: token === undefined ? undefined : createConfirmEndpoint({ ...parts, token }),
    readTopic: source && ((): Consumption => readConfirmTopic({ ...parts, source, database })),
  };
}

/** A daemon waits for its broker; a run by cron does not. */
async function checkBroker({ relay, brokerLabel }: DaemonOptions, signal: AbortSignal): Promise<void> {
  try {
    await Promise.race([relay.broker.check(), aborted(signal)]);
  } catch (error) {
    // Messages for the other brokers can be sent; the rest makes the run end with 1.
    if (error instanceof Error && "code" in error && error.code === "ROUTES_PARTLY_AWAY") return;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`the broker ${brokerLabel} cannot be used: ${reason}`, { cause: error });
  }
}

async function runUntilSignal(relay: Relay, options: DaemonOptions, signal: AbortSignal): Promise<ExitCode> {
  const { logger } = options.relay;
  await Promise.race([relay.start(), aborted(signal)]);
  if (!signal.aborted) logger.info("relay runs", { ...labels(options), owner: relay.owner });
  const { broker } = options.relay;
  if ((broker.routes?.brokers ?? [broker.name]).some((name) => name.startsWith("memory"))) {
    logger.warn("the broker memory: forgets every message; it is for trying things out");
  }
  const summaries = logSummaries(relay, logger);
  await aborted(signal);
  logger.info("relay stops", { because: String(signal.reason) });
  const { drained, unsettled } = await relay.stop();
  summaries.end();
  logger[drained ? "info" : "error"]("relay stopped", { drained, unsettled, ...relay.counts });
  return drained && signal.reason !== OUTPUT_CLOSED ? 0 : 1;
}

async function drainOnce(
  relay: Relay,
  options: DaemonOptions,
  limits: DrainOptions & { readonly signal: AbortSignal },
): Promise<ExitCode> {
  await checkBroker(options, limits.signal);
  const report = await relay.drain(limits);
  const verdict = verdictOf(report);
  options.relay.logger[verdict.level](verdict.message, { ...labels(options), ...report });
  return verdict.code;
}

function verdictOf({ complete, drained, failed, left }: DrainReport): {
  readonly code: ExitCode;
  readonly level: "info" | "warn" | "error";
  readonly message: string;
} {
  if (!complete || !drained) return { code: 1, level: "error", message: "not everything that is due could be sent" };
  const waits = left === undefined || left.backoff + left.behind > 0;
  if (!waits && failed === 0) return { code: 0, level: "info", message: "nothing is due any more" };
  const message = waits
    ? "what was due was tried, and messages wait for their next attempt"
    : "what was due was tried, and messages have failed";
  return { code: 3, level: "warn", message };
}

function labels({ databaseLabel, brokerLabel }: DaemonOptions): { readonly database: string; readonly broker: string } {
  return { database: databaseLabel, broker: brokerLabel };
}

function logSummaries(relay: Relay, logger: Logger): { end(): void } {
  let before = { ...relay.counts };
  const timer = setInterval(() => {
    const now = { ...relay.counts };
    const names = Object.keys(now) as (keyof typeof now)[];
    const lately = Object.fromEntries(names.map((name) => [name, now[name] - before[name]]));
    if (names.some((name) => now[name] !== before[name])) logger.info("in the last minute", lately);
    before = now;
  }, SUMMARY_MS);
  timer.unref();
  return { end: () => clearInterval(timer) };
}
