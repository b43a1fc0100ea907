/**
 * A drain into a real RocketMQ, beside the two things that can limit it: our producer alone with the very batches of the drain, and the drain
 * into a broker that answers at once.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Broker, OutgoingMessage } from "rowpost";
import { type Measurement, rateOf, startMeter } from "../measure/meter.ts";
import { processListeningOn, readProcess } from "../measure/processes.ts";
import { median, medianOrNull, rounded } from "../measure/statistics.ts";
import { measureDrain } from "../relay/in-process.ts";
import { atLeast, resultOf } from "../results/result.ts";
import { openRocketmq } from "../rowpost.ts";
import type { BenchContext } from "./scenario.ts";

const MESSAGES = 50_000;
const TOPIC = "rowpost-bench";

/** What the relay handed to the broker during a drain: the batches, and how many calls ran at once. */
interface Recording {
  readonly batches: (readonly OutgoingMessage[])[];
  running: number;
  mostAtOnce: number;
}

export async function outboxRocketmq(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const messages = options.messages ?? MESSAGES;
  createTopic(options.broker);
  const serverCpuMs = brokerCpu(options.broker);
  const runs: { drain: Measurement; alone: Measurement; instant: Measurement; limit: number }[] = [];
  await fill(context, Math.min(5_000, messages));
  await drainInto(context, Math.min(5_000, messages), serverCpuMs);
  for (let run = 1; run <= options.runs; run += 1) {
    context.progress(`broker that answers at once: run ${run} of ${options.runs}`);
    await fill(context, messages);
    const instant = await measureDrain({ database, messages, sendingMark: "on" });
    context.progress(`RocketMQ: run ${run} of ${options.runs}`);
    await fill(context, messages);
    const { measurement, recording } = await drainInto(context, messages, serverCpuMs);
    context.progress(`producer alone: run ${run} of ${options.runs}`);
    const alone = await producerAlone(context, recording, serverCpuMs);
    runs.push({ drain: measurement, alone, instant, limit: Math.min(rateOf(alone), rateOf(instant)) });
  }
  const ratio = rounded(medianOrNull(runs.map(({ drain, limit }) => rateOf(drain) / limit)), 3);
  context.report(
    resultOf({
      scenario: "outbox-rocketmq",
      database,
      variant: "drain into RocketMQ",
      ours: runs.map(({ drain }) => drain),
      figures: {
        "producer alone msg/s": rounded(median(runs.map(({ alone }) => rateOf(alone))), 0),
        "instant broker msg/s": rounded(median(runs.map(({ instant }) => rateOf(instant))), 0),
        "producer CPU ms/1000": rounded(
          median(runs.map(({ alone }) => (alone.clientCpuMs / alone.messages) * 1000)),
          2,
        ),
        ratioToSmaller: ratio,
      },
      targets: () => [atLeast("ratioToSmaller", ratio, 0.8)],
    }),
  );
}

async function fill({ database }: BenchContext, messages: number): Promise<void> {
  await database.clear();
  await database.load({ kind: "waiting", count: messages, first: 1, topic: TOPIC });
  await database.tidy();
}

async function drainInto(
  { database, options }: BenchContext,
  messages: number,
  otherCpuMs: () => number,
): Promise<{ readonly measurement: Measurement; readonly recording: Recording }> {
  const recording: Recording = { batches: [], running: 0, mostAtOnce: 0 };
  const broker = await openRocketmq(options.broker);
  await broker.check();
  const measurement = await measureDrain({
    database,
    messages,
    sendingMark: "on",
    broker: () => recorded(broker, recording),
    otherCpuMs,
  });
  return { measurement, recording };
}

function recorded(broker: Broker, recording: Recording): Broker {
  return {
    name: broker.name,
    features: broker.features,
    async publish(batch, options) {
      recording.batches.push(batch);
      recording.running += 1;
      recording.mostAtOnce = Math.max(recording.mostAtOnce, recording.running);
      try {
        return await broker.publish(batch, options);
      } finally {
        recording.running -= 1;
      }
    },
    check: () => broker.check(),
    close: () => broker.close(),
  };
}

/** The recorded batches again, as many at once as there were at most. */
async function producerAlone(
  { options }: BenchContext,
  recording: Recording,
  otherCpuMs: () => number,
): Promise<Measurement> {
  const broker = await openRocketmq(options.broker);
  await broker.check();
  const messages = recording.batches.reduce((sum, batch) => sum + batch.length, 0);
  let next = 0;
  let failed = 0;
  const meter = await startMeter({ serverCpuMs: () => 0, statements: async () => 0, otherCpuMs });
  meter.restart();
  const workers = Array.from({ length: recording.mostAtOnce }, async () => {
    for (let batch = recording.batches[next++]; batch !== undefined; batch = recording.batches[next++]) {
      const results = await broker.publish(batch, { signal: AbortSignal.timeout(10_000) });
      failed += results.reduce((sum, { status }) => sum + (status === "sent" ? 0 : 1), 0);
    }
  });
  await Promise.all(workers);
  const measured = await meter.stop(messages);
  await broker.close();
  if (failed > 0) throw new Error(`RocketMQ refused ${failed} of ${messages} messages`);
  return measured;
}

/** RocketMQ makes no topic by itself for gRPC clients. */
function createTopic(brokerUrl: string): void {
  const tool = fileURLToPath(new URL("../../../tools/services/rocketmq", import.meta.url));
  try {
    execFileSync(tool, ["topic", TOPIC], { stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    throw new Error(`the topic ${TOPIC} could not be made at ${brokerUrl}; is RocketMQ running? npm run services`, {
      cause: error,
    });
  }
}

/** CPU time of RocketMQ's process, so that it does not count as foreign. */
function brokerCpu(brokerUrl: string): () => number {
  const pid = processListeningOn(Number(new URL(brokerUrl).port || 8081));
  return () => (pid === undefined ? 0 : (readProcess(pid)?.ownMs ?? 0));
}
