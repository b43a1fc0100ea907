/** Alerts beside a relay or a console, evaluated every 15 s by the process with the lease. */
import { type Database, type Logger, type Metrics, silentMetrics, type TableLayout } from "rowpost";
import { createChannel } from "./channels/send.ts";
import type { AlertConfig } from "./config.ts";
import { createEvaluator, type Evaluator } from "./evaluator.ts";
import type { AlertsState } from "./state.ts";

const PACE: AlertsPace = { everyMs: 15_000, answerMs: 5_000 };

/** Options of {@link startAlerts}. */
export interface AlertsOptions {
  readonly sources: readonly {
    readonly name: string;
    readonly database: Database;
    readonly layout?: TableLayout | undefined;
  }[];
  readonly config: AlertConfig;
  readonly logger: Logger;
  readonly metrics?: Metrics | undefined;
  /** Default: {@link PACE}. */
  readonly pace?: AlertsPace | undefined;
}

export interface AlertsPace {
  readonly everyMs: number;
  readonly answerMs: number;
}

export interface RunningAlerts {
  /** Ends after the current turn and releases the leases. */
  close(): Promise<void>;
}

/** Starts at once. Several processes may run it, and one of them sends. */
export function startAlerts(options: AlertsOptions): RunningAlerts {
  const { everyMs } = options.pace ?? PACE;
  const evaluators = evaluatorsOf(options);
  const ended = new AbortController();
  const loops = evaluators.map((evaluator) => every(everyMs, ended.signal, () => evaluator.turn()));
  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    ended.abort();
    await Promise.all(loops);
    await Promise.all(evaluators.map((evaluator) => evaluator.close()));
  }
  return {
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** One turn, for cron. Undefined if another process evaluates. */
export async function evaluateOnce(options: AlertsOptions): Promise<AlertsState | undefined> {
  const [evaluator] = evaluatorsOf(options);
  if (evaluator === undefined) return undefined;
  try {
    return await evaluator.turn();
  } finally {
    await evaluator.close();
  }
}

function evaluatorsOf({
  config,
  logger,
  metrics = silentMetrics,
  pace = PACE,
  sources,
}: AlertsOptions): readonly Evaluator[] {
  const monotonicMs = (): number => performance.now();
  const { consoleUrl, rules, secrets } = config;
  const channels = config.channels.map((each) =>
    createChannel({ config: each, consoleUrl, secrets, monotonicMs, answerMs: pace.answerMs }),
  );
  return sources.map(({ database, layout = database.defaultLayout, name }) =>
    createEvaluator({ name, database, layout, rules, channels, logger, metrics, monotonicMs }),
  );
}

async function every(ms: number, signal: AbortSignal, turn: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await turn();
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(end, ms);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
  }
}
