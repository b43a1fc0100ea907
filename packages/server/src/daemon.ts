/** A relay as a process: started, told about, stopped by signals, or run once until nothing is due. */
import { type Broker, createRelay, type Logger, type Relay, type RelayOptions } from "rowpost";
import type { ExitCode } from "./cli/context.ts";
import { CommandFailure } from "./cli/failure.ts";
import { aborted, watchSignals } from "./signals.ts";

/** Options of {@link runRelay}. */
export interface DaemonOptions {
  readonly relay: RelayOptions & { readonly logger: Logger };
  /** For log lines; without secrets. */
  readonly databaseLabel: string;
  readonly brokerLabel: string;
  /** Drain what is due, at most this long, and end. Undefined: run until a signal. */
  readonly onceMs: number | undefined;
}

/** How often a relay that has something to tell says how much it did. */
const SUMMARY_MS = 60_000;

/**
 * Runs a relay until SIGTERM or SIGINT, or with `onceMs` until nothing is due. Returns 0 when everything was settled (and with `onceMs`: sent),
 * else 1. Throws when the table is not as the layout says, the database is away, or, with `onceMs`, the broker is.
 */
export async function runRelay(options: DaemonOptions): Promise<ExitCode> {
  const { logger } = options.relay;
  const signals = watchSignals((name) =>
    logger.error("second signal: ending without waiting for messages in flight", { signal: name }),
  );
  try {
    await checkBroker(options.relay.broker, options, signals.signal);
    const relay = createRelay(options.relay);
    logger.info("relay starts", { database: options.databaseLabel, broker: options.brokerLabel, owner: relay.owner });
    return options.onceMs === undefined
      ? await runUntilSignal(relay, logger, signals.signal)
      : await drainOnce(relay, logger, { timeoutMs: options.onceMs, signal: signals.signal });
  } finally {
    signals.end();
  }
}

/** A daemon waits for its broker, as it would later on; a run for cron has nobody to wait for. */
async function checkBroker(broker: Broker, options: DaemonOptions, signal: AbortSignal): Promise<void> {
  try {
    await Promise.race([broker.check(), aborted(signal)]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isOurs =
      error instanceof Error && "code" in error && (error.code === "MISSING_PEER" || error.code === "CONFIGURATION");
    if (options.onceMs !== undefined || isOurs) {
      throw new CommandFailure(`the broker ${options.brokerLabel} cannot be used: ${reason}`, { cause: error });
    }
    options.relay.logger.error("the broker cannot be used yet; messages wait until it can", { reason });
  }
}

async function runUntilSignal(relay: Relay, logger: Logger, signal: AbortSignal): Promise<ExitCode> {
  await relay.start();
  const summaries = logSummaries(relay, logger);
  await aborted(signal);
  logger.info("relay stops", { signal: String(signal.reason) });
  const { drained, unsettled } = await relay.stop();
  summaries.end();
  logger[drained ? "info" : "error"]("relay stopped", { drained, unsettled, ...relay.counts });
  return drained ? 0 : 1;
}

async function drainOnce(
  relay: Relay,
  logger: Logger,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ExitCode> {
  const { complete, drained, ...counts } = await relay.drain(options);
  const done = complete && drained;
  logger[done ? "info" : "error"](done ? "nothing is due any more" : "not everything that is due could be sent", {
    complete,
    drained,
    ...counts,
  });
  return done ? 0 : 1;
}

/** One line a minute, when there was anything. */
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
