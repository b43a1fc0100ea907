/**
 * A drain into a real broker, compared with its two possible limits: the broker's bare client with
 * the same batches, and a drain into the instant broker.
 */
import type { Broker, OutgoingMessage } from "rowpost";
import { UsageError } from "../arguments.ts";
import { cpuLimitOf } from "../measure/cpu-limit.ts";
import { type Measurement, rateOf, startMeter } from "../measure/meter.ts";
import { cpuOfFamilyMs, processListeningOn } from "../measure/processes.ts";
import { type ProfileRun, startProfile } from "../measure/profile.ts";
import { median, medianOrNull, rounded } from "../measure/statistics.ts";
import type { BrokerServer } from "../raw/broker.ts";
import { BROKER_FORMS, brokerOpenerOf } from "../raw/open-broker.ts";
import { measureDrain } from "../relay/in-process.ts";
import { atLeast, msPer1000, resultOf } from "../results/result.ts";
import { openBroker } from "../rowpost.ts";
import type { BenchContext, Scenario } from "./scenario.ts";

const MESSAGES = 50_000;
const WARM_UP = 5_000;

/** The relay's calls during a drain: the batches, and the concurrent calls. */
interface Recording {
  readonly batches: (readonly OutgoingMessage[])[];
  running: number;
  mostAtOnce: number;
}

/** One round: each of the three, right after each other. */
interface Run {
  readonly instant: Measurement;
  readonly drain: Measurement;
  readonly bare: Measurement;
}

interface Place extends BenchContext {
  readonly server: BrokerServer;
  readonly topic: string;
  /** CPU time of the broker's process; undefined if it is not on this machine. */
  readonly brokerCpuMs: () => number | undefined;
}

export const outboxBroker: Scenario = { variants: [], measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  const { options } = context;
  const open = brokerOpenerOf(options.broker);
  if (open === undefined) throw new UsageError(`--broker ${options.broker} is none of ${BROKER_FORMS}`);
  const server = await open();
  const topic = `rowpost-bench-${process.pid}`;
  const pid = processListeningOn(server.port);
  const brokerCpuMs = (): number | undefined => (pid === undefined ? undefined : cpuOfFamilyMs(pid));
  const place: Place = { ...context, server, topic, brokerCpuMs };
  await server.makeTopic(topic);
  try {
    const messages = options.messages ?? MESSAGES;
    await playRun(place, Math.min(WARM_UP, messages), "warm-up");
    const runs: Run[] = [];
    for (let run = 1; run <= options.runs; run += 1) {
      runs.push(await playRun(place, messages, `run ${run} of ${options.runs}`));
    }
    place.progress("beside the profiler");
    const profile = await startProfile();
    await drainInto(place, messages, profile);
    report(place, runs, await profile.shares());
  } finally {
    await server.removeTopic(topic);
    await server.close();
  }
}

async function playRun(place: Place, messages: number, title: string): Promise<Run> {
  const { database, server } = place;
  place.progress(`${title}: broker that answers at once`);
  await fill(place, messages);
  const instant = await measureDrain({ database, messages, sendingMark: "on" });
  place.progress(`${title}: ${server.name}`);
  const { measurement, recording } = await drainInto(place, messages);
  place.progress(`${title}: the client alone`);
  await server.emptyTopic(place.topic);
  return { instant, drain: measurement, bare: await bareClient(place, recording) };
}

async function fill({ database, topic }: Place, messages: number): Promise<void> {
  await database.clear();
  await database.load({ kind: "waiting", count: messages, first: 1, topic });
  await database.tidy();
}

async function drainInto(
  place: Place,
  messages: number,
  profile?: ProfileRun,
): Promise<{ readonly measurement: Measurement; readonly recording: Recording }> {
  const { database, options, brokerCpuMs, server, topic } = place;
  await fill(place, messages);
  await server.emptyTopic(topic);
  const recording: Recording = { batches: [], running: 0, mostAtOnce: 0 };
  const broker = await openBroker(options.broker);
  await broker.check();
  const measurement = await measureDrain({
    database,
    messages,
    sendingMark: "on",
    broker: () => recorded(broker, recording),
    otherCpuMs: brokerCpuMs,
    profile,
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

/** The recorded batches again, with the recorded maximum of concurrent calls. */
async function bareClient({ server, topic, brokerCpuMs }: Place, recording: Recording): Promise<Measurement> {
  const producer = await server.bareProducer(topic);
  const messages = recording.batches.reduce((sum, batch) => sum + batch.length, 0);
  let next = 0;
  const meter = await startMeter({ serverCpuMs: () => 0, statements: async () => 0, otherCpuMs: brokerCpuMs });
  meter.restart();
  const workers = Array.from({ length: recording.mostAtOnce }, async () => {
    for (let batch = recording.batches[next++]; batch !== undefined; batch = recording.batches[next++]) {
      await producer.publish(batch);
    }
  });
  await Promise.all(workers);
  const measured = await meter.stop(messages);
  await producer.close();
  return measured;
}

function report(place: Place, runs: readonly Run[], mainThread: string): void {
  const { database, server } = place;
  const bare = runs.map((run) => run.bare);
  const drain = runs.map((run) => run.drain);
  const limit = (run: Run): number => Math.min(rateOf(run.bare), rateOf(run.instant));
  const ratio = rounded(medianOrNull(runs.map((run) => rateOf(run.drain) / limit(run))), 3);
  const cpuLimit = (run: Run): number | null => cpuLimitOf([run.instant, run.bare]);
  const shareOfCpuLimit = (run: Run): number | null => {
    const highest = cpuLimit(run);
    return highest === null ? null : rateOf(run.drain) / highest;
  };
  place.report(
    resultOf({
      scenario: "outbox-broker",
      database,
      variant: `drain into ${server.name}`,
      ours: drain,
      figures: {
        "client alone msg/s": rounded(median(bare.map(rateOf)), 0),
        "instant broker msg/s": rounded(median(runs.map(({ instant }) => rateOf(instant))), 0),
        "client alone CPU ms/1000": msPer1000(bare, "clientCpuMs"),
        brokerCpuMsPer1000: msPer1000(drain, "otherCpuMs"),
        ratioToSmaller: ratio,
        "CPU limit msg/s": rounded(medianOrNull(runs.map(cpuLimit)), 0),
        ratioToCpuLimit: rounded(medianOrNull(runs.map(shareOfCpuLimit)), 3),
        "main thread %": mainThread,
      },
      targets: () => [atLeast("ratioToSmaller", ratio, 0.8)],
    }),
  );
}
