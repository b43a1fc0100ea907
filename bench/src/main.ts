/**
 * `npm run bench`: measures one scenario on one database. Progress goes to standard error, results
 * to standard output.
 */
import { type BenchArguments, checkVariants, parseBenchArguments, USAGE, UsageError } from "./arguments.ts";
import { writeReport } from "./results/report.ts";
import type { BenchResult } from "./results/result.ts";
import { plainTable, targetText } from "./results/table.ts";
import { loadStatements, migrateTables } from "./rowpost.ts";
import { adminReads } from "./scenarios/admin-reads.ts";
import { confirm } from "./scenarios/confirm.ts";
import { consoleReads } from "./scenarios/console-reads.ts";
import { inbox } from "./scenarios/inbox.ts";
import { isolationBacklog } from "./scenarios/isolation-backlog.ts";
import { isolationBytes } from "./scenarios/isolation-bytes.ts";
import { isolationEndpoint } from "./scenarios/isolation-endpoint.ts";
import { isolationKey } from "./scenarios/isolation-key.ts";
import { outboxBroker } from "./scenarios/outbox-broker.ts";
import { outboxDrain } from "./scenarios/outbox-drain.ts";
import { outboxEnqueue } from "./scenarios/outbox-enqueue.ts";
import { outboxLatency } from "./scenarios/outbox-latency.ts";
import { outboxLone } from "./scenarios/outbox-lone.ts";
import { outboxMemory } from "./scenarios/outbox-memory.ts";
import { outboxOutage } from "./scenarios/outbox-outage.ts";
import { outboxPeers } from "./scenarios/outbox-peers.ts";
import { queueAppend } from "./scenarios/queue-append.ts";
import { queueConsume } from "./scenarios/queue-consume.ts";
import { queueIdle } from "./scenarios/queue-idle.ts";
import { queueLatency } from "./scenarios/queue-latency.ts";
import { queuePeers } from "./scenarios/queue-peers.ts";
import { queueSearch } from "./scenarios/queue-search.ts";
import { relayTakeover } from "./scenarios/relay-takeover.ts";
import { rocketmqProducers } from "./scenarios/rocketmq-producers.ts";
import type { Scenario } from "./scenarios/scenario.ts";
import { openerOf } from "./servers/open.ts";
import type { BenchDatabase } from "./servers/server.ts";

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "admin-reads": adminReads,
  "console-reads": consoleReads,
  "outbox-enqueue": outboxEnqueue,
  "outbox-drain": outboxDrain,
  inbox,
  confirm,
  "outbox-latency": outboxLatency,
  "outbox-broker": outboxBroker,
  /** Former name, from when RocketMQ was the only broker; `--broker` defaults to RocketMQ. */
  "outbox-rocketmq": outboxBroker,
  "outbox-lone": outboxLone,
  "outbox-memory": outboxMemory,
  "outbox-outage": outboxOutage,
  "outbox-peers": outboxPeers,
  "queue-append": queueAppend,
  "queue-consume": queueConsume,
  "queue-idle": queueIdle,
  "queue-latency": queueLatency,
  "queue-peers": queuePeers,
  "queue-search": queueSearch,
  "relay-takeover": relayTakeover,
  "rocketmq-producers": rocketmqProducers,
  "isolation-endpoint": isolationEndpoint,
  "isolation-key": isolationKey,
  "isolation-backlog": isolationBacklog,
  "isolation-bytes": isolationBytes,
};

async function main(): Promise<number> {
  const words = process.argv.slice(2);
  if (words.includes("--help") || words.includes("-h")) {
    console.log(help());
    return 0;
  }
  const request = parseBenchArguments(words);
  if ("files" in request) {
    const missed = writeReport(request.files, request.output);
    console.error(`wrote ${request.output}; ${missed} targets missed`);
    return request.check && missed > 0 ? 1 : 0;
  }
  const scenario = SCENARIOS[request.scenario];
  if (scenario === undefined) {
    throw new UsageError(
      `there is no scenario ${request.scenario}; there are ${Object.keys(SCENARIOS).join(", ")}\n${USAGE}`,
    );
  }
  checkVariants(request, scenario.variants);
  const results = await measure(scenario, request);
  if (!request.json) console.log(plainTable(results));
  const missed = results.flatMap(({ variant, targets }) =>
    targets.filter(({ met }) => !met).map((target) => ({ variant, target })),
  );
  for (const { variant, target } of missed) console.error(`${request.scenario}, ${variant}: ${targetText(target)}`);
  return request.check && missed.length > 0 ? 1 : 0;
}

function help(): string {
  const scenarios = Object.entries(SCENARIOS).map(
    ([name, { variants }]) => `  ${name.padEnd(18)} ${variants.join(", ")}`,
  );
  return `${USAGE}\n\nScenarios and their variants:\n${scenarios.join("\n").replace(/ +$/gm, "")}`;
}

/** Creates the run's databases, measures, and always drops them. */
async function measure(scenario: Scenario, options: BenchArguments): Promise<BenchResult[]> {
  const open = openerOf(options.database);
  if (open === undefined) throw new UsageError(`--database ${options.database} is no address of a database\n${USAGE}`);
  const opened = new Set<BenchDatabase>();
  const results: BenchResult[] = [];
  let number = 0;
  const another = async ({ migrated } = { migrated: true }): Promise<BenchDatabase> => {
    const database = await open(number === 0 ? "" : `_${number}`);
    number += 1;
    let dropped = false;
    const tracked: BenchDatabase = {
      ...database,
      async drop() {
        if (!dropped) await database.drop();
        dropped = true;
        opened.delete(tracked);
      },
    };
    opened.add(tracked);
    if (migrated) await migrateTables(tracked.url);
    return tracked;
  };
  const dropAll = async (): Promise<void> => {
    for (const database of opened) await database.drop();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void dropAll().finally(() => process.exit(130)));
  }
  try {
    const database = await another();
    await scenario.measure({
      database,
      another,
      statements: await loadStatements(database.product),
      options,
      progress: (text) => console.error(`${options.scenario} ${database.product}: ${text}`),
      report(result) {
        results.push(result);
        if (options.json) console.log(JSON.stringify(result));
      },
    });
  } finally {
    await dropAll();
  }
  return results;
}

main().then(
  // Explicit, so that a handle left open by a driver does not keep the process alive.
  (code) => process.exit(code),
  (error: unknown) => {
    if (error instanceof UsageError) {
      console.error(`bench: ${error.message}`);
      process.exit(2);
    }
    console.error(error);
    process.exit(1);
  },
);
