/**
 * Work that begins at a fixed rate whether or not earlier work has ended, so that waiting shows in
 * the latency, not in the rate.
 */
import { keyOf } from "../relay/messages.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type Measurement, type MeterSources, startMeter } from "./meter.ts";

/** Messages at the start of each run that do not count: connections open, code compiles. */
const WARM_UP = 100;

export interface LatencyRun {
  readonly measurement: Measurement;
  readonly samples: readonly number[];
}

export interface OpenLoop {
  readonly database: BenchDatabase;
  readonly messages: number;
  readonly rate: number;
  /** Default {@link WARM_UP}. */
  readonly warmUp?: number;
  readonly clientProcesses: readonly number[];
  /** CPU time of a process not to be counted with the program's. */
  readonly otherCpuMs?: MeterSources["otherCpuMs"];
  /** One transaction; it sets its stamp right before COMMIT. */
  readonly begin: (number: number, stamps: Map<number, number>) => Promise<void>;
  /** Arrival times; called when all have been committed. */
  readonly arrivals: (stamps: ReadonlyMap<number, number>) => Promise<ReadonlyMap<number, number>>;
}

/** Runs the loop with its warm-up. Throws if a committed message did not arrive. */
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
  // The meter has counted the warm-up's statements too.
  const measurement = { ...measured, statements: (measured.statements * messages) / (messages + warmUp) };
  const samples: number[] = [];
  for (const [number, began] of stamps) {
    const at = arrivals.get(number);
    if (at === undefined) throw new Error(`${keyOf(number)} was committed and did not arrive`);
    if (number > warmUp) samples.push(at - began);
  }
  return { measurement, samples };
}

export async function until(reached: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!reached()) {
    if (performance.now() > end) throw new Error("not everything was published within 60 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
