/**
 * The program of the scenario: transactions at a fixed rate, each with an order row and, in most
 * loads, one message.
 */
import { createOutbox } from "rowpost";
import type { Measurement } from "../measure/meter.ts";
import { runOpenLoop, until } from "../measure/open-loop.ts";
import { readProcess } from "../measure/processes.ts";
import { firstPublishes, machineMs } from "../relay/messages.ts";
import type { RelayProcess } from "../relay/processes.ts";
import { openRowpost } from "../rowpost.ts";
import { insertOrder, orderMessage, orderValues } from "../scenarios/business.ts";
import type { BenchDatabase } from "../servers/server.ts";

export const RATE = 200;

/**
 * Messages of a run that do not count. A relay runs for days, and at this rate V8 takes half a
 * minute to compile what a drain heats within a second: our relay costs 1.3 ms a message in its
 * first 5 s, of which 0.4 are V8's own threads, and 0.7 after 30 s (MariaDB).
 */
const WARM_UP = { alone: 1_000, published: 6_000 };

export interface LoneRun {
  /** `clientCpuMs` is the program's, `otherCpuMs` that of the publishing process. */
  readonly measurement: Measurement;
  /** Commit to publish; empty without a publisher. */
  readonly latenciesMs: readonly number[];
  /** Statements of the publishing process per message; null if the server counts all. */
  readonly relayStatements: number | null;
}

export interface LoneLoad {
  readonly database: BenchDatabase;
  readonly messages: number;
  readonly begin: (number: number, stamps: Map<number, number>) => Promise<void>;
  /** Absent: nothing publishes. */
  readonly publisher?: RelayProcess | undefined;
}

export async function runLoad({ database, messages, begin, publisher }: LoneLoad): Promise<LoneRun> {
  const before = (await publisher?.report())?.statements ?? 0;
  let relayStatements: number | null = null;
  const { measurement, samples } = await runOpenLoop({
    database,
    messages,
    rate: RATE,
    clientProcesses: [],
    begin,
    warmUp: publisher === undefined ? WARM_UP.alone : WARM_UP.published,
    ...(publisher === undefined ? {} : { otherCpuMs: () => readProcess(publisher.pid)?.ownMs }),
    async arrivals(stamps) {
      if (publisher === undefined) return stamps;
      await until(() => publisher.published() >= stamps.size);
      const report = await publisher.report();
      if (!database.countsControl) relayStatements = (report.statements - before) / report.numbers.length;
      return firstPublishes(report);
    },
  });
  return { measurement, latenciesMs: publisher === undefined ? [] : samples, relayStatements };
}

/** Orders through rowpost's `transaction`, with or without a message each. */
export async function runProgram(load: Omit<LoneLoad, "begin">, withMessage: boolean): Promise<LoneRun> {
  const { database } = load;
  const rowpost = await openRowpost(database.url, 8);
  const outbox = createOutbox({ database: rowpost.database });
  const insert = insertOrder(database);
  const run = await runLoad({
    ...load,
    begin: (number, stamps) =>
      outbox.transaction(async (tx) => {
        await tx.query(insert, orderValues(number));
        if (withMessage) await outbox.enqueue(tx, orderMessage(number));
        stamps.set(number, machineMs());
      }),
  });
  await rowpost.close();
  return run;
}
