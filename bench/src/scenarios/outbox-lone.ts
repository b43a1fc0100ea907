/**
 * Cost of a single message: 200 transactions a second with an order and one message, alone, beside
 * our relay, and with peers. The figures are CPU time that the outbox adds to the program.
 */
import { graphileLoads, gruelboxLoads, type Load, ourLoads } from "../lone/loads.ts";
import { type LoneRun, RATE } from "../lone/program.ts";
import { medianOrNull, percentile, rounded } from "../measure/statistics.ts";
import { atMost, resultOf } from "../results/result.ts";
import { createOrderTable } from "./business.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const MESSAGES = 2_000;

export const outboxLone: Scenario = { variants: ["relay", "graphile-worker", "gruelbox"], measure };

type Runs = ReadonlyMap<string, readonly LoneRun[]>;

async function measure(context: BenchContext): Promise<void> {
  const { database, options } = context;
  await createOrderTable(database);
  const loads: Record<string, Load> = { ...ourLoads(database) };
  const own = (): ReturnType<BenchContext["another"]> => context.another({ migrated: false });
  const hasGraphile = wanted(context, "graphile-worker") && database.product === "postgres";
  const hasGruelbox = wanted(context, "gruelbox") && ["postgres", "mariadb"].includes(database.product);
  if (hasGraphile) Object.assign(loads, await graphileLoads(await own()));
  if (hasGruelbox) Object.assign(loads, await gruelboxLoads(await own()));
  const runs = new Map<string, LoneRun[]>(Object.keys(loads).map((name) => [name, []]));
  for (let run = 1; run <= options.runs; run += 1) {
    for (const [name, load] of Object.entries(loads)) {
      context.progress(`${name}: run ${run} of ${options.runs}`);
      runs.get(name)?.push(await load(options.messages ?? MESSAGES));
    }
  }
  const relay = { variant: "rowpost: the relay", load: "relay", beside: "message", ofItsOwn: true };
  const outbox = { variant: "rowpost: message and relay", load: "relay", beside: "order" };
  const runner = { variant: "graphile-worker: the runner", load: "runner", beside: "jobs", ofItsOwn: true };
  const gruelbox = { variant: "gruelbox: message and publish", load: "gruelbox", beside: "javaOrder" };
  report(context, runs, { ...relay, peer: hasGraphile ? runner : undefined });
  report(context, runs, { ...outbox, peer: hasGruelbox ? gruelbox : undefined });
  if (hasGraphile) report(context, runs, runner);
  if (hasGruelbox) report(context, runs, gruelbox);
}

type Part = "client" | "server" | "both";

interface Line {
  readonly variant: string;
  readonly load: string;
  readonly beside: string;
  /** It runs in a separate process, whose CPU time is the client's part. */
  readonly ofItsOwn?: boolean;
  /** Upper limit. */
  readonly peer?: Line | undefined;
}

function report(context: BenchContext, runs: Runs, line: Line): void {
  const measured = runs.get(line.load) ?? [];
  const latency = (percent: number): number | null =>
    medianOrNull(measured.map(({ latenciesMs }) => percentile(latenciesMs, percent)));
  const statements = medianOrNull(measured.map((run, index) => statementsOf(run, runs.get(line.beside)?.[index])));
  const [client, server, both] = [added(runs, line, "client"), added(runs, line, "server"), added(runs, line, "both")];
  const peerUs = line.peer === undefined ? undefined : added(runs, line.peer, "both");
  const result = resultOf({
    scenario: "outbox-lone",
    database: context.database,
    variant: line.variant,
    ours: measured.map(({ measurement }) => measurement),
    raw: (runs.get(line.beside) ?? []).map(({ measurement }) => measurement),
    p50Ms: latency(50),
    p99Ms: latency(99),
    figures: {
      "offered msg/s": RATE,
      "added client CPU µs/msg": client,
      "added server CPU µs/msg": server,
      "added CPU µs/msg": both,
      ...(statements === null ? {} : { "added statements/msg": rounded(statements, 2) }),
      ...(peerUs === undefined ? {} : { "peer's added CPU µs/msg": peerUs }),
    },
    targets: () => (peerUs === undefined || peerUs === null ? [] : [atMost("added CPU µs/msg", both, peerUs)]),
  });
  context.report(result);
}

/** Statements a message beyond the load to subtract; drivers count those of their own process. */
function statementsOf({ measurement, relayStatements }: LoneRun, beside: LoneRun | undefined): number | null {
  if (beside === undefined || Number.isNaN(measurement.statements)) return null;
  return (measurement.statements - beside.measurement.statements) / measurement.messages + (relayStatements ?? 0);
}

/** Cost of a message beyond the load to subtract, as the median over neighboring runs. */
function added(runs: Runs, { load, beside, ofItsOwn = false }: Line, part: Part): number | null {
  const without = runs.get(beside) ?? [];
  const each = (runs.get(load) ?? []).map(({ measurement }, index) => {
    const other = without[index]?.measurement;
    if (other === undefined || measurement.serverCpuMs === null || other.serverCpuMs === null) return null;
    if (measurement.otherCpuMs === null) return null;
    const program = ofItsOwn ? 0 : measurement.clientCpuMs - other.clientCpuMs;
    const client = program + measurement.otherCpuMs;
    const server = measurement.serverCpuMs - other.serverCpuMs;
    return ({ client, server, both: client + server }[part] / measurement.messages) * 1000;
  });
  return rounded(medianOrNull(each), 0);
}
