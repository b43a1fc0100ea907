/**
 * Measures a steady topic with a fast endpoint, with and without a bad neighbor: how much arrived,
 * and how late.
 */
import { createOutbox } from "rowpost";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { median, medianOrNull, percentile, rounded } from "../measure/statistics.ts";
import { machineMs } from "../relay/messages.ts";
import { type RelayProcess, startRelayProcess } from "../relay/processes.ts";
import { atLeast, atMost, type BenchResult, ratioOfRuns, resultOf, type Target } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import { type BenchContext, inTurn } from "../scenarios/scenario.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type Answer, type Endpoints, startEndpoints } from "./endpoints.ts";
import { type Arrived, arrivedOf, GRACE_MS, HEALTHY, offerSteadily, WARM_UP_SECONDS } from "./steady.ts";
import { measureUpkeep, type Upkeep } from "./upkeep.ts";

/** Share of the rate that other topics must keep, whatever a neighbor does. */
const RATIO = 0.9;
const P99_MS = 250;
/** Held back rows cost nothing, except for one change a second by a probe. */
const CHANGES_PER_SECOND = 1;

/** With `--quick`. */
const QUICK_SECONDS = 5;

export interface Neighbor {
  readonly variant: string;
  readonly seconds: number;
  readonly publishTimeoutMs?: number;
  readonly answers: Readonly<Record<string, Answer>>;
  readonly load?: (database: BenchDatabase) => Promise<void>;
  /** Called every second: topics of the neighbor's next messages. */
  readonly offers?: (second: number) => readonly string[];
  /** Condition of its held back rows, whose cost is measured. */
  readonly heldBack?: string;
  /** The database URL of the relay. Default: direct. */
  readonly relayUrl?: string;
  /** More figures and their targets, read before the relay stops. */
  readonly alsoOf?: (run: RunningRelay) => Promise<Also>;
}

export interface RunningRelay {
  readonly relay: RelayProcess;
  readonly endpoints: Endpoints;
}

export interface Also {
  readonly figures: Readonly<Record<string, number | null>>;
  readonly targets: readonly Target[];
}

interface Run extends Arrived {
  readonly measurement: Measurement;
  /** From the start of the relay to the first healthy message; null: none arrived. */
  readonly firstMs: number | null;
  readonly upkeep: Upkeep | undefined;
  readonly also: Also | undefined;
}

export async function measureBeside(context: BenchContext, scenario: string, neighbor: Neighbor): Promise<void> {
  const { database, options } = context;
  const { variant, publishTimeoutMs } = neighbor;
  const seconds = options.quick ? QUICK_SECONDS : neighbor.seconds;
  const nobody: Neighbor = {
    variant,
    seconds: Math.min(seconds, 15),
    answers: {},
    ...(publishTimeoutMs === undefined ? {} : { publishTimeoutMs }),
  };
  const run = async (name: string, number: number, who: Neighbor): Promise<Run> => {
    context.progress(`${variant}: ${name}, run ${number + 1} of ${options.runs}`);
    await database.clear();
    await who.load?.(database);
    await database.tidy();
    return await runBeside(database, who);
  };
  const { raw: alone, ours: beside } = await inTurn(
    options.runs,
    (number) => run("alone", number, nobody),
    (number) => run("beside its neighbor", number, { ...neighbor, seconds }),
  );
  context.report(resultOfRuns(scenario, database, variant, alone, beside));
}

function resultOfRuns(
  scenario: string,
  database: BenchDatabase,
  variant: string,
  alone: readonly Run[],
  beside: readonly Run[],
): BenchResult {
  const each = (runs: readonly Run[], percent: number): number | null =>
    medianOrNull(runs.map(({ samples }) => percentile(samples, percent)));
  const measured = (runs: readonly Run[]): Measurement[] => runs.map(({ measurement }) => measurement);
  const total = (name: "offered" | "delivered"): number => beside.reduce((sum, run) => sum + run[name], 0);
  const last = beside.at(-1);
  const changes = median(beside.flatMap(({ upkeep }) => upkeep?.changes ?? []));
  const ratio = rounded(ratioOfRuns(measured(beside), measured(alone)), 3);
  return resultOf({
    scenario,
    database,
    variant,
    ours: measured(beside),
    raw: measured(alone),
    p50Ms: each(beside, 50),
    p99Ms: each(beside, 99),
    figures: {
      offered: total("offered"),
      delivered: total("delivered"),
      "first after ms": rounded(medianOrNull(beside.map(({ firstMs }) => firstMs)), 0),
      "p99 alone ms": rounded(each(alone, 99), 1),
      ...(changes === undefined ? {} : { "held-back row changes/s": changes }),
      ...last?.upkeep?.figures,
      ...last?.also?.figures,
    },
    targets: ({ p99Ms }) => [
      atLeast("ratio", ratio, RATIO),
      atMost("p99Ms", p99Ms, P99_MS),
      ...(changes === undefined ? [] : [atMost("held-back row changes/s", changes, CHANGES_PER_SECOND)]),
      ...(last?.also?.targets ?? []),
    ],
  });
}

async function runBeside(database: BenchDatabase, neighbor: Neighbor): Promise<Run> {
  const endpoints = await startEndpoints(neighbor.answers);
  const rowpost = await openRowpost(database.url, 8);
  const outbox = createOutbox({ database: rowpost.database });
  const startedMs = machineMs();
  const relay = await startRelayProcess({
    url: neighbor.relayUrl ?? database.url,
    sendingMark: "on",
    label: "bench",
    record: false,
    endpoints: endpoints.url,
    publishTimeoutMs: neighbor.publishTimeoutMs,
  });
  try {
    const meter = await startMeter({
      serverCpuMs: () => database.serverCpuMs(),
      statements: async () => (database.countsControl ? await database.statements() : 0),
      clientProcesses: [relay.pid],
    });
    const committing = await offerSteadily(outbox, neighbor.seconds, (second) => neighbor.offers?.(second) ?? []);
    await new Promise((resolve) => setTimeout(resolve, GRACE_MS));
    const healthy = arrivedOf(committing, endpoints);
    const measurement = await meter.stop(healthy.delivered, (neighbor.seconds - WARM_UP_SECONDS) * 1000);
    const first = endpoints.nthArrivalAt(HEALTHY, 0);
    return {
      ...healthy,
      measurement,
      firstMs: first === undefined ? null : first - startedMs,
      upkeep: neighbor.heldBack === undefined ? undefined : await measureUpkeep(database, relay, neighbor.heldBack),
      also: await neighbor.alsoOf?.({ relay, endpoints }),
    };
  } finally {
    await relay.stop();
    await rowpost.close();
    await endpoints.close();
  }
}
