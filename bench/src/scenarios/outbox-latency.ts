/**
 * From commit to publish at 200 messages a second, with the relay in the producer's process and in
 * another one; and the cost of an idle relay.
 */
import { createOutbox, createRelay } from "rowpost";
import { instantBroker } from "../broker.ts";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { type LatencyRun, runOpenLoop, until } from "../measure/open-loop.ts";
import { rounded } from "../measure/statistics.ts";
import { firstPublishes, machineMs, numberOf } from "../relay/messages.ts";
import { type RelayProcess, startRelayProcess } from "../relay/processes.ts";
import { atMost, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { createOrderTable, insertOrder, orderMessage, orderValues } from "./business.ts";
import { type Reader, reportLatency } from "./latency.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const RATE = 200;
const IDLE_BEFORE_MS = 3_000;
const IDLE_MS = 5_000;

const PARTS: Readonly<Record<string, (context: BenchContext) => Promise<void>>> = {
  "same-process": (context) => latencyVariant(context, "same process", inThisProcess),
  "other-process": (context) => latencyVariant(context, "other process", inAnotherProcess),
  idle: idleCost,
};

export const outboxLatency: Scenario = {
  variants: Object.keys(PARTS),
  async measure(context) {
    await createOrderTable(context.database);
    for (const [name, part] of Object.entries(PARTS)) if (wanted(context, name)) await part(context);
  },
};

function latencyVariant(
  context: BenchContext,
  variant: Reader,
  run: (database: BenchDatabase, messages: number) => Promise<LatencyRun>,
): Promise<void> {
  const { database } = context;
  return reportLatency(context, {
    scenario: "outbox-latency",
    variant,
    rate: RATE,
    run: (messages) => run(database, messages),
    limits: { sameProcess: { p50: 3 }, notified: { p50: 6, p99: 30 } },
  });
}

async function inThisProcess(database: BenchDatabase, messages: number): Promise<LatencyRun> {
  await database.clear();
  const rowpost = await openRowpost(database.url, 8);
  const publishedAt = new Map<number, number>();
  const broker = instantBroker((batch) => {
    const now = machineMs();
    for (const { key } of batch) if (!publishedAt.has(numberOf(key))) publishedAt.set(numberOf(key), now);
  });
  const relay = createRelay({ database: rowpost.database, broker });
  await relay.start();
  const run = await produce(database, rowpost.database, messages, [], async (committing) => {
    await until(() => publishedAt.size >= committing.size);
    return publishedAt;
  });
  await relay.stop();
  await rowpost.close();
  return run;
}

async function inAnotherProcess(database: BenchDatabase, messages: number): Promise<LatencyRun> {
  await database.clear();
  const relay = await startRelayProcess({ url: database.url, sendingMark: "on", label: "bench", record: true });
  const rowpost = await openRowpost(database.url, 8);
  const run = await produce(database, rowpost.database, messages, [relay.pid], async (committing) => {
    await until(() => relay.published() >= committing.size);
    return firstPublishes(await relay.report());
  });
  await rowpost.close();
  await relay.stop();
  return run;
}

type Published = (committing: ReadonlyMap<number, number>) => Promise<ReadonlyMap<number, number>>;

/** A transaction with an order and its message; the stamp is taken right before COMMIT. */
async function produce(
  database: BenchDatabase,
  producing: Awaited<ReturnType<typeof openRowpost>>["database"],
  messages: number,
  clientProcesses: readonly number[],
  arrivals: Published,
): Promise<LatencyRun> {
  const outbox = createOutbox({ database: producing });
  const insert = insertOrder(database);
  return await runOpenLoop({
    database,
    messages,
    rate: RATE,
    clientProcesses,
    arrivals,
    begin: (number, stamps) =>
      outbox.transaction(async (tx) => {
        await tx.query(insert, orderValues(number));
        await outbox.enqueue(tx, orderMessage(number));
        stamps.set(number, machineMs());
      }),
  });
}

/** Statements and CPU time of an idle relay, some seconds after its last message. */
async function idleCost(context: BenchContext): Promise<void> {
  const { database } = context;
  await database.clear();
  context.progress("idle");
  const relay = await startRelayProcess({ url: database.url, sendingMark: "on", label: "bench", record: true });
  await new Promise((resolve) => setTimeout(resolve, IDLE_BEFORE_MS));
  const before = await relay.report();
  const meter = await startMeter({
    serverCpuMs: () => database.serverCpuMs(),
    statements: async () => (database.countsControl ? await database.statements() : 0),
    clientProcesses: [relay.pid],
  });
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const measured = await meter.stop(1);
  const perSecond = await idleStatements(database, relay, measured, before.statements);
  await relay.stop();
  const seconds = measured.wallMs / 1000;
  const figures = {
    statementsPerSecond: rounded(perSecond, 1),
    "client CPU ms/s": rounded(measured.clientCpuMs / seconds, 1),
    "server CPU ms/s": rounded(measured.serverCpuMs === null ? null : measured.serverCpuMs / seconds, 1),
  };
  const line = resultOf({
    scenario: "outbox-latency",
    database,
    variant: "idle relay",
    ours: [],
    figures,
    targets: () => [atMost("statementsPerSecond", rounded(perSecond, 1), 10)],
  });
  context.report({ ...line, foreignCpuPercent: rounded(measured.foreignCpuPercent, 0), runs: 1 });
}

async function idleStatements(
  database: BenchDatabase,
  relay: RelayProcess,
  measured: Measurement,
  before: number,
): Promise<number> {
  const counted = database.countsControl ? measured.statements : (await relay.report()).statements - before;
  return (counted / measured.wallMs) * 1000;
}
