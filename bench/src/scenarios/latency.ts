import type { LatencyRun } from "../measure/open-loop.ts";
import { medianOrNull, percentile, rounded } from "../measure/statistics.ts";
import { atMost, resultOf } from "../results/result.ts";
import type { BenchContext } from "./scenario.ts";

const MESSAGES = 1_000;

/** Location of the reader relative to the producer. */
export type Reader = "same process" | "other process";

/** Limits in milliseconds. */
export interface LatencyLimits {
  readonly sameProcess: { readonly p50: number };
  /** Another process on PostgreSQL: NOTIFY brings it close to the same process. */
  readonly notified: { readonly p50: number; readonly p99?: number };
}

/** Another process on other databases, which has to poll. */
const POLLED = { p50: 25, p99: 80 };

export interface LatencyVariant {
  readonly scenario: string;
  readonly variant: Reader;
  readonly rate: number;
  readonly run: (messages: number) => Promise<LatencyRun>;
  readonly limits: LatencyLimits;
}

export async function reportLatency(context: BenchContext, measured: LatencyVariant): Promise<void> {
  const { database, options } = context;
  const { scenario, variant, rate, run, limits } = measured;
  const other = database.product === "postgres" ? limits.notified : POLLED;
  const { p50, p99 }: LatencyLimits["notified"] = variant === "same process" ? limits.sameProcess : other;
  const runs: LatencyRun[] = [];
  for (let number = 1; number <= options.runs; number += 1) {
    context.progress(`${variant}: run ${number} of ${options.runs}`);
    runs.push(await run(options.messages ?? MESSAGES));
  }
  const each = (percent: number): number | null =>
    medianOrNull(runs.map(({ samples }) => percentile(samples, percent)));
  context.report(
    resultOf({
      scenario,
      database,
      variant,
      ours: runs.map(({ measurement }) => measurement),
      p50Ms: each(50),
      p99Ms: each(99),
      figures: {
        "offered msg/s": rate,
        "max ms": rounded(medianOrNull(runs.map(({ samples }) => Math.max(...samples))), 1),
      },
      targets: ({ p50Ms, p99Ms }) => [
        atMost("p50Ms", p50Ms, p50),
        ...(p99 === undefined ? [] : [atMost("p99Ms", p99Ms, p99)]),
      ],
    }),
  );
}
