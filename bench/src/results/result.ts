/** One line of results, printed by `--json` and the source of bench/RESULTS.md. */
import { type Measurement, rateOf } from "../measure/meter.ts";
import { median, medianOrNull, rounded } from "../measure/statistics.ts";
import type { BenchDatabase, Product } from "../servers/server.ts";

export interface Target {
  readonly figure: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly value: number | null;
  readonly met: boolean;
}

/** All figures are medians of `runs` runs; null if a scenario does not have it. */
export interface BenchResult {
  readonly scenario: string;
  readonly database: Product;
  readonly variant: string;
  readonly messages: number;
  readonly ratePerSecond: number | null;
  readonly rawRatePerSecond: number | null;
  /**
   * Median of the runs' ratios: each of our runs is divided by the raw run right before it, so that
   * slow minutes cancel out.
   */
  readonly ratioToRaw: number | null;
  readonly statementsPerMessage: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly clientCpuMsPer1000: number | null;
  readonly serverCpuMsPer1000: number | null;
  readonly rawClientCpuMsPer1000: number | null;
  readonly rawServerCpuMsPer1000: number | null;
  /**
   * Processor share of unrelated programs in the worst run, which shows how far the rates can be
   * trusted.
   */
  readonly foreignCpuPercent: number | null;
  readonly runs: number;
  /** Other figures of the scenario, by name with unit. */
  readonly figures: Readonly<Record<string, number | string | null>>;
  readonly targets: readonly Target[];
  readonly serverVersion: string;
  readonly node: string;
  /** Time of measurement, ISO 8601. */
  readonly at: string;
}

export interface ResultInput {
  readonly scenario: string;
  readonly database: BenchDatabase;
  readonly variant: string;
  readonly ours: readonly Measurement[];
  /** The raw runs in the same order; empty if there are none. */
  readonly raw?: readonly Measurement[];
  readonly p50Ms?: number | null;
  readonly p99Ms?: number | null;
  readonly figures?: Readonly<Record<string, number | string | null>>;
  /** Targets over the finished fields. */
  readonly targets?: (result: BenchResult) => readonly Target[];
}

export function resultOf(input: ResultInput): BenchResult {
  const { ours, raw = [] } = input;
  const result: BenchResult = {
    scenario: input.scenario,
    database: input.database.product,
    variant: input.variant,
    messages: ours[0]?.messages ?? 0,
    ratePerSecond: rounded(median(ours.map(rateOf)), 0),
    rawRatePerSecond: rounded(median(raw.map(rateOf)), 0),
    ratioToRaw: rounded(ratioOfRuns(ours, raw), 3),
    statementsPerMessage: rounded(median(ours.map((run) => run.statements / run.messages)), 4),
    p50Ms: rounded(input.p50Ms, 2),
    p99Ms: rounded(input.p99Ms, 2),
    clientCpuMsPer1000: msPer1000(ours, "clientCpuMs"),
    serverCpuMsPer1000: msPer1000(ours, "serverCpuMs"),
    rawClientCpuMsPer1000: msPer1000(raw, "clientCpuMs"),
    rawServerCpuMsPer1000: msPer1000(raw, "serverCpuMs"),
    foreignCpuPercent: worst([...ours, ...raw].map((run) => run.foreignCpuPercent)),
    runs: ours.length,
    figures: input.figures ?? {},
    targets: [],
    serverVersion: input.database.version,
    node: process.versions.node,
    at: new Date().toISOString(),
  };
  return { ...result, targets: input.targets?.(result) ?? [] };
}

/** CPU time of 1,000 messages; null if unknown. */
export function msPer1000(
  runs: readonly Measurement[],
  whose: "clientCpuMs" | "serverCpuMs" | "otherCpuMs",
): number | null {
  const each = runs.map(({ [whose]: ms, messages }) => (ms === null ? null : (ms / messages) * 1000));
  return rounded(medianOrNull(each), 2);
}

/** Median of the ratios of neighboring runs. */
export function ratioOfRuns(ours: readonly Measurement[], other: readonly Measurement[]): number | null {
  const ratios = ours.flatMap((run, index) => {
    const beside = other[index];
    return beside === undefined ? [] : [rateOf(run) / rateOf(beside)];
  });
  return median(ratios) ?? null;
}

/** A target with a lower limit. An unknown figure misses it. */
export function atLeast(figure: string, value: number | null, limit: number): Target {
  return { figure, atLeast: limit, value, met: value !== null && value >= limit };
}

export function atMost(figure: string, value: number | null, limit: number): Target {
  return { figure, atMost: limit, value, met: value !== null && value <= limit };
}

function worst(values: readonly (number | null)[]): number | null {
  const known = values.filter((value): value is number => value !== null);
  return known.length === 0 ? null : rounded(Math.max(...known), 0);
}

/** CPU time of a message in our runs, client and all servers, as a share of theirs right before. */
export function shareOfCpu(ours: readonly Measurement[], theirs: readonly Measurement[]): number | null {
  const each = ({ clientCpuMs, messages, otherCpuMs, serverCpuMs }: Measurement): number | null =>
    serverCpuMs === null || otherCpuMs === null ? null : (clientCpuMs + serverCpuMs + otherCpuMs) / messages;
  return medianOrNull(
    ours.map((run, index) => {
      const other = theirs[index];
      const [own, their] = [each(run), other === undefined ? null : each(other)];
      return own === null || their === null ? null : own / their;
    }),
  );
}
