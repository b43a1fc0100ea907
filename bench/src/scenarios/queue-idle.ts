/** Cost of idle consumers: connections, statements and CPU time of one process. */
import { setTimeout as sleep } from "node:timers/promises";
import mysql2 from "mysql2";
import type { Consumer, Queue } from "rowpost/queue";
import { countCalls } from "../measure/count-calls.ts";
import { startMeter } from "../measure/meter.ts";
import { median, medianOrNull, rounded } from "../measure/statistics.ts";
import { openQueue } from "../queue/topic.ts";
import { atMost, resultOf } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

/** Groups are spread over them. */
const TOPICS = 10;
/** Leases are distributed, initial connections closed, code compiled. */
const SETTLED_MS = 20_000;
const MEASURED_MS = 20_000;

interface Plan {
  readonly consumers: number;
  readonly partitions: number;
  readonly limits: { readonly connections: number; readonly statements: number; readonly cpuMs: number };
}

const PLANS: Readonly<Record<string, Plan>> = {
  "50x1": { consumers: 50, partitions: 1, limits: { connections: 6, statements: 15, cpuMs: 10 } },
  "100x16": { consumers: 100, partitions: 16, limits: { connections: 12, statements: 30, cpuMs: 20 } },
};

export const queueIdle: Scenario = {
  variants: Object.keys(PLANS),
  async measure(context) {
    for (const [name, plan] of Object.entries(PLANS)) if (wanted(context, name)) await measurePlan(context, plan);
  },
};

async function measurePlan(context: BenchContext, plan: Plan): Promise<void> {
  const { database, options } = context;
  const { consumers, partitions, limits } = plan;
  const runs: Awaited<ReturnType<typeof measureOnce>>[] = [];
  for (let run = 0; run < options.runs; run += 1) {
    context.progress(`${consumers} consumers of ${partitions} partitions, ${run + 1} of ${options.runs}`);
    runs.push(await measureOnce(database, plan));
  }
  const of = (figure: (run: (typeof runs)[number]) => number | null): number | null =>
    rounded(medianOrNull(runs.map(figure)), 1);
  const perSecond = (value: number | null): number | null => (value === null ? null : (value * 1000) / MEASURED_MS);
  const connections = rounded(median(runs.map((run) => run.connections)), 0);
  const statements = of(({ measurement }) => perSecond(measurement.statements));
  const cpuMs = of(({ measurement }) => perSecond(measurement.clientCpuMs));
  const line = resultOf({
    scenario: "queue-idle",
    database,
    ours: [],
    variant: `${consumers} groups x ${partitions} partitions`,
    figures: {
      connections,
      "statements/s": statements,
      "client CPU ms/s": cpuMs,
      "server CPU ms/s": of(({ measurement }) => perSecond(measurement.serverCpuMs)),
    },
    targets: () => [
      ...(connections === null || database.product === "sqlite"
        ? []
        : [atMost("connections", connections, limits.connections)]),
      atMost("statements/s", statements, limits.statements),
      atMost("client CPU ms/s", cpuMs, limits.cpuMs),
    ],
  });
  context.report({ ...line, runs: runs.length });
}

async function measureOnce(database: BenchDatabase, { consumers, partitions }: Plan) {
  const before = await connectionsOf(database);
  const opened = await openQueue(database, 2);
  const running: Consumer[] = [];
  try {
    await makeTopics(opened.queue, partitions);
    for (let index = 0; index < consumers; index += 1) {
      const place = { topic: topicOf(index % TOPICS), group: `group_${index}` };
      running.push(await opened.queue.consume({ ...place, from: "end", handler: () => undefined }));
    }
    await sleep(SETTLED_MS);
    const meter = await startMeter({
      serverCpuMs: () => database.serverCpuMs(),
      statements: () => statementsOf(database),
    });
    await sleep(MEASURED_MS);
    const measurement = await meter.stop(consumers);
    return { measurement, connections: (await connectionsOf(database)) - before };
  } finally {
    await Promise.all(running.map((consumer) => consumer.stop()));
    await opened.close();
  }
}

let mysqlStatements: number | undefined;

/** Of this process only: MySQL counts all clients. */
async function statementsOf(database: BenchDatabase): Promise<number> {
  if (database.product === "postgres" || database.product === "sqlite") return await database.statements();
  if (mysqlStatements === undefined) {
    mysqlStatements = 0;
    countCalls(Reflect.get(mysql2, "Connection").prototype, "query", () => {
      mysqlStatements = (mysqlStatements ?? 0) + 1;
    });
  }
  return mysqlStatements;
}

function topicOf(index: number): string {
  return `idle_${index}`;
}

async function makeTopics(queue: Queue, partitions: number): Promise<void> {
  for (let index = 0; index < TOPICS; index += 1) {
    await queue.deleteTopic(topicOf(index));
    await queue.createTopic({ topic: topicOf(index), partitions });
  }
}

/** To this database, including the measuring ones. */
async function connectionsOf(database: BenchDatabase): Promise<number> {
  if (database.product === "sqlite") return 0;
  return await database.number(
    database.product === "postgres"
      ? "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
      : "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()",
  );
}
