/** Writes bench/RESULTS.md from the JSON lines of one or more runs. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, type as osType, release, totalmem } from "node:os";
import type { BenchResult } from "./result.ts";
import { markdownTable, targetText } from "./table.ts";

const COLUMNS = 100;

const EXPLANATIONS: Readonly<Record<string, string>> = {
  "outbox-enqueue":
    "One business row and one message in a transaction on 8 connections, and 100 messages in one call. Raw: the same statements by hand on 8 connections, each body made into JSON as a program would.",
  "outbox-drain":
    "Rows wait in the table, become visible at one commit, and go to a broker that answers at once. Raw: the relay's own scan, claim and settle statements with parameters made beforehand, one after another on one connection. `overlapped raw` is the same with the settles on a second connection, for information.",
  "outbox-latency":
    "200 transactions a second, from the moment before COMMIT is sent to the moment the broker is handed the message; so the commit's own time is part of it.",
  "outbox-lone":
    "What a message costs that comes alone: 200 transactions a second with an order and one message. `added`: processor time above the same program without it, beside it in the same run; for a relay or runner in a process of its own that process's time, and the server's above the program's. `message and relay` counts what the message costs the program too, as gruelbox does both in one process: it publishes right after the commit. Raw: the program without it. The first 30 s of each process that publishes count for nothing: V8 and the JVM compile.",
  "outbox-broker":
    "Drain into a real broker; its bare client alone with the same batches, as many at once, and the same guarantee; and the same drain into a broker that answers at once. `ratioToSmaller` is the drain's rate over the smaller of the other two. For information: `brokerCpuMsPer1000` is what the drain costs the broker's process, and `ratioToCpuLimit` the drain's rate over `CPU limit`, the rate at which all processors of the machine would be busy if a message of the drain cost no more CPU time than in the other two together. RocketMQ's bare client is our own producer.",
  "outbox-memory": "Highest resident memory of a relay process that drains a backlog for some seconds.",
  "outbox-outage":
    "A broker (HTTP, one endpoint) refuses connections for some seconds and is back: from then to the first message, and until as many have arrived as had been committed by then. 50 messages a second come in all the time.",
  "queue-append":
    "Messages appended in calls of 100 by 4 producers of one process. Raw: multi-row INSERTs of 100 rows into the same table, each in its transaction, one after the other on one connection, with ids that the program counts; beside it the same on four connections (not SQLite), where no id says what was committed before it.",
  "queue-consume":
    "A topic read from its start, with a handler that returns at once, in batches of 500. Raw: the same statements in a plain loop on one connection: range read, records, progress. `costOfDeliveryToOne`: processor time of client and server for a delivery, with three groups, over that with one.",
  "queue-latency":
    "From right before the COMMIT of a transaction with an order and an append to the call of the handler, at 200 messages a second.",
  inbox:
    "A handler that inserts one row, once for each message, on 8 connections: in a transaction of the inbox's own, or in one that the program has begun. Raw: the same two INSERTs by hand in one transaction, with the columns that one would need.",
  confirm:
    "500 messages confirmed at a time, in the order in which they were sent. Raw: one UPDATE by hand of the same rows, in a transaction of its own.",
  "relay-takeover":
    "A relay process is ended by a signal, again and again: from the signal to the next publish by another process of a key that was the ended one's. 100 messages a second of 32 ordering keys come in all the time. `kill-alone`: SIGKILL of the only relay, and the next is started as soon as its process has ended; `started ms` is when its relay has started (median). `kill-beside`, `stop-beside`: SIGKILL or SIGTERM with a second relay beside it. All options of the relays are the defaults; duplicates, lost and reordered messages are counted in a file that the relays publish into. With 10 rounds the p99 is the highest.",
  "rocketmq-producers":
    "Messages to one RocketMQ 5 without a relay, by our classic producer, our gRPC producer (through the proxy, which is in the broker's process) and the official Java client on the classic protocol, in turn, in requests of 256 messages. Ours: 4 calls of 500 messages at once; Java: 16 threads.",
  "isolation-endpoint":
    "50 messages a second to an endpoint that answers at once, beside another topic whose endpoint is ill; all figures are of the first topic. In all `isolation-…` scenarios raw is the same without the neighbor, `ratio` the share that arrived of what would have arrived without it, and a message that did not arrive counts with its age at the end, so a p99 above some seconds is a lower bound.",
  "isolation-key":
    "The same beside an ordering key whose head has failed and blocks its followers. `held-back row changes/s` (by the rows' own versions) and the engine's counters beside it are of ten seconds after the run in which nothing is enqueued.",
  "isolation-backlog":
    "The same, started on a table in which the rows of a topic whose endpoint answers 429 wait before it.",
  "isolation-bytes":
    "The same beside large bodies whose endpoint is slow, with the highest resident memory of the relay process; and large bodies over a link to the database that is narrow.",
  "console-reads":
    "Answers of the console's API on a table with 10,000,000 rows, of which 25,000 have failed, while 2,000 messages a second come in and a relay publishes them; one request at a time, in the bench's process. `viewers`: a drain beside 20 viewers over the same drain alone. `bulk`: from the request to the end of a retry of 20,000 failed messages of one topic at the table's end, with the search for them. `cap-…`: what the dashboard of DotNetCore.CAP asks, on the same table.",
  "queue-search":
    "A topic with 5,000,000 messages in the twelve months before this one; the time of each call of `queue.search` and `queue.rewind`, the first ones included.",
  "queue-peers":
    "Messages appended by one producer in calls of 1,000, and read by one group or three, through each queue on the same server, rowpost right after each. A figure of the table is the peer's; `rowpost times as fast` of ours. Ours leaves a record of who has read what, the others leave none.",
  "outbox-peers":
    "Waiting messages drained by each library on the same server, rowpost right after each peer. Peers get fewer messages: their rates fall with the backlog.",
};

/**
 * Reads result lines, the newest last; a later line of the same scenario, database and variant
 * replaces an earlier one.
 */
function readResults(files: readonly string[]): BenchResult[] {
  const latest = new Map<string, BenchResult>();
  for (const file of files) {
    for (const line of readFileSync(file, "utf8").split("\n")) {
      if (!line.startsWith("{")) continue;
      const result = JSON.parse(line) as BenchResult;
      latest.set(`${result.scenario} ${result.database} ${result.serverVersion} ${result.variant}`, result);
    }
  }
  return [...latest.values()];
}

function reportOf(results: readonly BenchResult[]): string {
  const scenarios = [...new Set(results.map(({ scenario }) => scenario))];
  const missed = results.flatMap((result) =>
    result.targets
      .filter(({ met }) => !met)
      .map(
        (target) =>
          `- ${result.scenario}, ${result.database} ${result.serverVersion}, ${result.variant}: ${targetText(target)}`,
      ),
  );
  const targets = results.reduce((sum, result) => sum + result.targets.length, 0);
  return [
    "# Benchmark results",
    "",
    "Written by `bench/run-all.sh`; do not edit. Each figure is the median of the runs, raw and ours in turn; a ratio is the median of the runs' own ratios.",
    "Rates depend on the machine and on what else it does (`foreign CPU`: share of all processors that others took, in the worst run).",
    "CPU milliseconds per 1,000 messages are the steady figure.",
    "",
    ...machineLines(results),
    "",
    `Targets met: ${targets - missed.length} of ${targets}.`,
    ...(missed.length === 0 ? [] : ["Missed:", "", ...missed]),
    ...scenarios.flatMap((scenario) => [
      "",
      `## ${scenario}`,
      "",
      EXPLANATIONS[scenario] ?? "",
      "",
      markdownTable(results.filter((result) => result.scenario === scenario).map(withoutScenario)),
    ]),
    "",
  ]
    .flatMap(wrapped)
    .join("\n");
}

/** Wraps prose at 100 columns, with indented list items; tables stay. */
function wrapped(text: string): string[] {
  if (text.startsWith("|")) return [text];
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    const longer = last === "" ? word : `${last} ${word}`;
    if (longer.length <= COLUMNS || last.trim() === "") lines[lines.length - 1] = longer;
    else lines.push(text.startsWith("- ") ? `  ${word}` : word);
  }
  return lines;
}

/** The heading has the scenario. */
function withoutScenario(result: BenchResult): BenchResult {
  return { ...result, scenario: "" };
}

function machineLines(results: readonly BenchResult[]): string[] {
  const dates = results.map(({ at }) => at).sort();
  const versions = [...new Set(results.map(({ database, serverVersion }) => `${database} ${serverVersion}`))];
  return [
    `- Machine: ${cpus().length} x ${cpus()[0]?.model.trim() ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GB, ${osType()} ${release()}; servers on the same machine, over loopback`,
    `- Node ${[...new Set(results.map(({ node }) => node))].join(", ")}; ${versions.join(", ")}`,
    `- Measured ${dates[0] ?? ""} to ${dates.at(-1) ?? ""}`,
  ];
}

export function writeReport(files: readonly string[], target: string): number {
  const results = readResults(files);
  writeFileSync(target, reportOf(results));
  return results.flatMap((result) => result.targets).filter(({ met }) => !met).length;
}
