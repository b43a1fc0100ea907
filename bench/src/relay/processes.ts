/**
 * Relays in separate processes: starts them, waits until they share the shards, and collects their
 * publications.
 */
import { type ChildProcess, fork } from "node:child_process";
import { extname } from "node:path";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { residentBytes } from "../measure/processes.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { untilSettled } from "./in-process.ts";
import type { RelayProcessMessage, RelayProcessOrder, RelayProcessReport } from "./messages.ts";

export interface RelayProcess {
  readonly pid: number;
  /** Messages published since the start, as last reported. */
  published(): number;
  /** Everything published since the last report. */
  report(): Promise<RelayProcessReport>;
  /** Resident memory in bytes, now and at its highest. */
  memory(): { readonly now: number; readonly highest: number } | undefined;
  stop(): Promise<void>;
  /** Sends a signal; resolves when the process has ended. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

export async function startRelayProcess(order: RelayProcessOrder): Promise<RelayProcess> {
  return await startPublishing(new URL(`./relay.process${extname(import.meta.url)}`, import.meta.url), order);
}

/** The same for any program that uses messages.ts. `execPath`: its Node.js. */
export async function startPublishing(
  file: URL | string,
  order: object,
  execPath: string = process.execPath,
): Promise<RelayProcess> {
  const stdio: ("ignore" | "inherit" | "ipc")[] = ["ignore", "inherit", "inherit", "ipc"];
  const child = fork(file, [], { serialization: "advanced", stdio, execPath });
  let published = 0;
  child.on("message", (message: RelayProcessMessage) => {
    if (message.kind === "count") published = message.published;
  });
  const ready = messageOf(child, "ready");
  child.send(order);
  await ready;
  const { pid } = child;
  if (pid === undefined) throw new Error("the relay process has no id");
  return {
    pid,
    published: () => published,
    async report() {
      const report = messageOf(child, "report");
      child.send("report");
      return await report;
    },
    memory: () => residentBytes(pid),
    stop: () => ended(child, () => child.send("stop")),
    end: (signal) => ended(child, () => child.kill(signal)),
  };
}

/** A relay that cannot finish ends after its own drain timeout. */
const STOP_LIMIT_MS = 30_000;

/** Tells the process to end. One killed by the system (out of memory) has ended already. */
async function ended(child: ChildProcess, ask: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  ask();
  const limit = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await exit;
  clearTimeout(limit);
}

/** The next message of a kind; rejects if the process ends first. */
function messageOf<Kind extends RelayProcessMessage["kind"]>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<RelayProcessMessage, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`a relay process ended with exit code ${code}`));
    const onMessage = (message: RelayProcessMessage): void => {
      if (message.kind !== kind) return;
      child.off("message", onMessage);
      child.off("exit", onExit);
      resolve(message as Extract<RelayProcessMessage, { kind: Kind }>);
    };
    child.on("message", onMessage);
    child.once("exit", onExit);
  });
}

export interface ProcessesMeasurement extends Measurement {
  /** Publications beyond one for each message. */
  readonly duplicates: number;
  /** Shards of each relay at the start, such as `8+8`. */
  readonly shards: string;
  /** Messages published by each relay, such as `24811+25189`. */
  readonly shares: string;
}

/** What {@link measureRelayProcesses} is to do. */
export interface ProcessesRequest {
  readonly database: BenchDatabase;
  readonly relays: number;
  readonly messages: number;
  /** Broker's rate limit for each relay; absent: none. */
  readonly messagesPerSecond?: number | undefined;
}

/**
 * Starts the relays on a nearly empty table, waits until they share the shards, commits all
 * messages at once, and measures until all are settled.
 */
export async function measureRelayProcesses({
  database,
  relays,
  messages,
  messagesPerSecond,
}: ProcessesRequest): Promise<ProcessesMeasurement> {
  await database.clear();
  const running: RelayProcess[] = [];
  try {
    for (let number = 1; number <= relays; number += 1) {
      const order = { url: database.url, sendingMark: "on", record: true, messagesPerSecond } as const;
      running.push(await startRelayProcess({ ...order, label: `bench-${number}` }));
    }
    const shards = await untilShared(database, relays);
    const before = await warmUp(database, running);
    // Read before the rows are there, so that it is not part of the run.
    const meter = await startMeter({
      serverCpuMs: () => database.serverCpuMs(),
      statements: async () => (database.countsControl ? await database.statements() : 0),
      clientProcesses: running.map(({ pid }) => pid),
    });
    await database.load({ kind: "waiting", count: messages, first: 1, oneTransaction: true });
    meter.restart();
    await untilPublished(running, messages + WARM_UP);
    const polls = await untilSettled(database, messages);
    const measured = await meter.stop(messages);
    const reports = await Promise.all(running.map((relay) => relay.report()));
    // Counted by the server or by the processes' drivers.
    const statements = database.countsControl ? measured.statements - polls : total(reports) - before;
    return { ...measured, statements, ...countPublished(reports, messages), shards };
  } finally {
    await Promise.all(running.map((relay) => relay.stop()));
  }
}

const WARM_UP = 2_000;

/**
 * Warms up code and prepared statements in every process. Returns the statements counted by the
 * drivers so far.
 */
async function warmUp(database: BenchDatabase, running: readonly RelayProcess[]): Promise<number> {
  await database.load({ kind: "waiting", count: WARM_UP, first: 900_000_000, oneTransaction: true });
  await untilPublished(running, WARM_UP);
  await untilSettled(database, WARM_UP);
  return total(await Promise.all(running.map((relay) => relay.report())));
}

function total(reports: readonly RelayProcessReport[]): number {
  return reports.reduce((sum, report) => sum + report.statements, 0);
}

async function untilPublished(running: readonly RelayProcess[], messages: number): Promise<void> {
  const end = performance.now() + 300_000;
  while (running.reduce((sum, relay) => sum + relay.published(), 0) < messages) {
    if (performance.now() > end)
      throw new Error(`the relay processes did not publish ${messages} messages within 300 s`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/**
 * Waits until every shard has an owner and every relay a share (SQLite has one shard, so one relay
 * has none). Returns the shares.
 */
export async function untilShared(database: BenchDatabase, relays: number): Promise<string> {
  const end = performance.now() + 60_000;
  for (;;) {
    const all = await database.number("SELECT COUNT(*) FROM local_message_shard");
    const owned = await database.number("SELECT COUNT(*) FROM local_message_shard WHERE owner IS NOT NULL");
    const owners = await database.number("SELECT COUNT(DISTINCT owner) FROM local_message_shard");
    const largest = await database.number(
      "SELECT MAX(shards) FROM (SELECT COUNT(*) AS shards FROM local_message_shard WHERE owner IS NOT NULL GROUP BY owner) AS owned",
    );
    const fair = all === 1 ? owners === 1 : owners === relays && largest === Math.ceil(all / relays);
    if (all > 0 && owned === all && fair) return relays === 1 || all === 1 ? `${all}` : `${largest}+${all - largest}`;
    if (performance.now() > end)
      throw new Error(`${owners} of ${relays} relays own ${owned} of ${all} shards after 60 s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Each message at least once, or the run is void. */
function countPublished(
  reports: readonly RelayProcessReport[],
  messages: number,
): { readonly duplicates: number; readonly shares: string } {
  const times = new Uint8Array(messages + 1);
  let publications = 0;
  for (const { numbers } of reports) {
    for (const number of numbers) {
      times[number] = (times[number] ?? 0) + 1;
      publications += 1;
    }
  }
  const lost = times.subarray(1).reduce((sum, count) => sum + (count === 0 ? 1 : 0), 0);
  if (lost > 0) throw new Error(`${lost} of ${messages} messages were never published`);
  return { duplicates: publications - messages, shares: reports.map(({ numbers }) => numbers.length).join("+") };
}
