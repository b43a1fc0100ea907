/**
 * Work that begins at a fixed rate, whether or not the work before it is through: what waits is
 * seen in the latency, not in the rate.
 */
import { keyOf } from "../relay/messages.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type Measurement, type MeterSources, startMeter } from "./meter.ts";

/** Messages at the start of each run that count for nothing: connections open, code compiles. */
const WARM_UP = 100;

/** One run: how long each message took. */
export interface LatencyRun {
  readonly measurement: Measurement;
  readonly samples: readonly number[];
}

export interface OpenLoop {
  readonly database: BenchDatabase;
  readonly messages: number;
  /** Transactions that begin in a second. */
  readonly rate: number;
  /** Default {@link WARM_UP}. */
  readonly warmUp?: number;
  readonly clientProcesses: readonly number[];
  /** CPU time of a process that is not to be counted with the program's. */
  readonly otherCpuMs?: MeterSources["otherCpuMs"];
  /** One transaction; it sets its stamp right before COMMIT. */
  readonly begin: (number: number, stamps: Map<number, number>) => Promise<void>;
  /** When each of them arrived; called when all have been committed. */
  readonly arrivals: (stamps: ReadonlyMap<number, number>) => Promise<ReadonlyMap<number, number>>;
}

/** Runs the loop with its warm-up. Throws when a message that was committed did not arrive. */
export async function runOpenLoop(loop: OpenLoop): Promise<LatencyRun> {
  const { database, messages, rate, clientProcesses, otherCpuMs, warmUp = WARM_UP } = loop;
  const stamps = new Map<number, number>();
  const meter = await startMeter({
    serverCpuMs: () => database.serverCpuMs(),
    statements: () => database.statements(),
    clientProcesses,
    ...(otherCpuMs === undefined ? {} : { otherCpuMs }),
  });
  const running: Promise<void>[] = [];
  const start = performance.now();
  for (let number = 1; number <= messages + warmUp; number += 1) {
    const wait = start + (number * 1000) / rate - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    if (number === warmUp) meter.restart();
    running.push(loop.begin(number, stamps));
  }
  await Promise.all(running);
  const arrivals = await loop.arrivals(stamps);
  const measured = await meter.stop(messages);
  // The meter has counted those of the warm-up too.
  const measurement = { ...measured, statements: (measured.statements * messages) / (messages + warmUp) };
  const samples: number[] = [];
  for (const [number, began] of stamps) {
    const at = arrivals.get(number);
    if (at === undefined) throw new Error(`${keyOf(number)} was committed and did not arrive`);
    if (number > warmUp) samples.push(at - began);
  }
  return { measurement, samples };
}

/** Waits for what the messages of a run come to. */
export async function until(reached: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!reached()) {
    if (performance.now() > end) throw new Error("not everything was published within 60 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
