import { gruelboxDriver } from "../peers/peers.ts";
import { measurePeer } from "../peers/run.ts";
import { startRelayProcess } from "../relay/processes.ts";
import { createOrderTable } from "../scenarios/business.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { runJobs, startGraphileWorker } from "./graphile-worker.ts";
import { type LoneRun, RATE, runProgram } from "./program.ts";

export type Load = (messages: number) => Promise<LoneRun>;

/** `order` and `message`: the program alone. `relay`: beside our relay. */
export function ourLoads(database: BenchDatabase): Readonly<Record<"order" | "message" | "relay", Load>> {
  return {
    order: (messages) => runProgram({ database, messages }, false),
    async message(messages) {
      await database.clear();
      return await runProgram({ database, messages }, true);
    },
    async relay(messages) {
      await database.clear();
      const publisher = await startRelayProcess({
        url: database.url,
        sendingMark: "on",
        label: "lone",
        record: true,
        // Each report costs a part of the result.
        tellEveryMs: 250,
      });
      const run = await runProgram({ database, messages, publisher }, true);
      await publisher.stop();
      return run;
    },
  };
}

/** `jobs`: the program alone, with a job each. `runner`: beside graphile-worker's runner. */
export async function graphileLoads(database: BenchDatabase): Promise<Readonly<Record<"jobs" | "runner", Load>>> {
  await createOrderTable(database);
  await (await startGraphileWorker(database)).stop();
  const clear = (): Promise<void> => database.script("TRUNCATE graphile_worker._private_jobs");
  return {
    async jobs(messages) {
      await clear();
      return await runJobs(database, messages, undefined);
    },
    async runner(messages) {
      await clear();
      const publisher = await startGraphileWorker(database);
      const run = await runJobs(database, messages, publisher);
      await publisher.stop();
      return run;
    },
  };
}

/**
 * `javaOrder`: a Java program with the order only. `gruelbox`: the same with gruelbox, which
 * publishes in that program right after the commit.
 */
export async function gruelboxLoads(
  database: BenchDatabase,
): Promise<Readonly<Record<"javaOrder" | "gruelbox", Load>>> {
  await createOrderTable(database);
  const peer = { name: "gruelbox", command: gruelboxDriver("Lone") };
  const load =
    (word: "order" | "outbox"): Load =>
    async (messages) => {
      const measured = await measurePeer(peer, database, { messages, words: [String(RATE), word] });
      return { measurement: measured, latenciesMs: measured.latenciesMs, relayStatements: null };
    };
  return { javaOrder: load("order"), gruelbox: load("outbox") };
}
