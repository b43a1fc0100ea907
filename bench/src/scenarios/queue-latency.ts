/**
 * From commit to handler at 200 messages a second, with the consumer in the producer's process and
 * in another one.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createOutbox } from "rowpost";
import { type LatencyRun, runOpenLoop } from "../measure/open-loop.ts";
import type { ConsumerProcessMessage } from "../queue/consumer.process.ts";
import { type OpenedQueue, openQueue, queueMessage, TOPIC } from "../queue/topic.ts";
import { machineMs, numberOf } from "../relay/messages.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { createOrderTable, insertOrder, orderValues } from "./business.ts";
import { type Reader, reportLatency } from "./latency.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const RATE = 200;
const ALL_WITHIN_MS = 60_000;

interface Handled {
  readonly atMs: ReadonlyMap<number, number>;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

const CONSUMERS: Readonly<Record<string, readonly [Reader, (opened: OpenedQueue, url: string) => Promise<Handled>]>> = {
  "same-process": ["same process", consumeHere],
  "other-process": ["other process", consumeElsewhere],
};

export const queueLatency: Scenario = {
  variants: Object.keys(CONSUMERS),
  async measure(context) {
    await createOrderTable(context.database);
    for (const [name, [variant, consume]] of Object.entries(CONSUMERS)) {
      if (wanted(context, name)) await latencyVariant(context, variant, consume);
    }
  },
};

function latencyVariant(
  context: BenchContext,
  variant: Reader,
  consume: (opened: OpenedQueue, url: string) => Promise<Handled>,
): Promise<void> {
  const { database } = context;
  return reportLatency(context, {
    scenario: "queue-latency",
    variant,
    rate: RATE,
    async run(messages) {
      const opened = await openQueue(database, 8);
      const handled = await consume(opened, database.url);
      try {
        return await produce(database, opened, handled, messages);
      } finally {
        await handled.stop();
        await opened.close();
      }
    },
    limits: { sameProcess: { p50: 4 }, notified: { p50: 8 } },
  });
}

async function consumeHere({ queue }: OpenedQueue): Promise<Handled> {
  const atMs = new Map<number, number>();
  const consumer = await queue.consume({
    topic: TOPIC,
    group: "bench",
    from: "end" as const,
    handler: ({ key }) => {
      note(atMs, numberOf(key ?? ""), machineMs());
    },
  });
  return {
    atMs,
    pids: [],
    async stop() {
      await consumer.stop();
    },
  };
}

async function consumeElsewhere(_: OpenedQueue, url: string): Promise<Handled> {
  const atMs = new Map<number, number>();
  const entry = new URL(
    import.meta.url.endsWith(".ts") ? "../queue/consumer.process.ts" : "../queue/consumer.process.js",
    import.meta.url,
  );
  const child: ChildProcess = fork(entry, [url], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  child.on("message", (message: ConsumerProcessMessage) => {
    if (message.kind === "handled") note(atMs, message.number, message.atMs);
  });
  const ended = once(child, "exit");
  await Promise.race([
    once(child, "message"),
    ended.then(([code]) => Promise.reject(new Error(`the consumer's process ended with exit code ${code}`))),
  ]);
  return {
    atMs,
    pids: [child.pid ?? 0],
    async stop() {
      child.disconnect();
      await ended;
    },
  };
}

/** The first delivery counts. */
function note(atMs: Map<number, number>, number: number, now: number): void {
  if (!atMs.has(number)) atMs.set(number, now);
}

/** A transaction with an order and an append; the stamp is taken right before COMMIT. */
async function produce(
  database: BenchDatabase,
  { database: producing, queue }: OpenedQueue,
  handled: Handled,
  messages: number,
): Promise<LatencyRun> {
  const outbox = createOutbox({ database: producing });
  const insert = insertOrder(database);
  return await runOpenLoop({
    database,
    messages,
    rate: RATE,
    clientProcesses: handled.pids,
    async begin(number, stamps) {
      await outbox.transaction(async (tx) => {
        await tx.query(insert, orderValues(number));
        await queue.append(tx, [queueMessage(number)]);
        stamps.set(number, machineMs());
      });
      queue.wake();
    },
    async arrivals(stamps) {
      await untilHandled(handled, stamps.size);
      return handled.atMs;
    },
  });
}

async function untilHandled({ atMs }: Handled, count: number): Promise<void> {
  const end = performance.now() + ALL_WITHIN_MS;
  while (atMs.size < count) {
    if (performance.now() > end) throw new Error(`${atMs.size} of ${count} messages were handled within 60 s`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
