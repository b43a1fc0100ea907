/**
 * Three producers for one RocketMQ 5: our classic one, our gRPC one, and the official Java client
 * on the classic protocol, with equal messages in equal batches. Without a relay, so that only
 * producer and broker are measured.
 */
import type { OutgoingMessage } from "rowpost";
import { UsageError } from "../arguments.ts";
import { type Measurement, type Meter, rateOf, startMeter } from "../measure/meter.ts";
import { cpuOfFamilyMs, processListeningOn } from "../measure/processes.ts";
import { rounded } from "../measure/statistics.ts";
import { startJavaProducer } from "../peers/java-producer.ts";
import { openRocketmqServer } from "../raw/rocketmq.ts";
import { atLeast, atMost, msPer1000, ratioOfRuns, resultOf } from "../results/result.ts";
import { openBroker } from "../rowpost.ts";
import type { BenchContext, Scenario } from "./scenario.ts";

const MESSAGES = 50_000;
const CALL = 500;
const CALLS = 4;
/** Of one request: the default of both our producers. */
const BATCH = 256;
const JAVA_THREADS = 16;
const BODY = JSON.stringify({ order: "4711", total: 129.5, lines: [{ article: "A-1", count: 2 }] }).padEnd(200);

export const rocketmqProducers: Scenario = { variants: [], measure };

/** A warmed-up producer that can send all messages repeatedly. */
interface Way {
  readonly name: string;
  send(meter: Meter): Promise<Measurement>;
  close(): Promise<void>;
}

async function measure(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const url = new URL(options.broker);
  if (url.protocol !== "rocketmq:") throw new UsageError("rocketmq-producers takes --broker rocketmq://host:port");
  const server = await openRocketmqServer(url);
  const topic = `rowpost-bench-producers-${process.pid}`;
  const messages = options.messages ?? MESSAGES;
  const nameServer = `${url.hostname}:${server.port + 1795}`;
  await server.makeTopic(topic);
  const ways: Way[] = [];
  try {
    ways.push(await ourWay("classic", `rocketmq-classic://${nameServer}`, topic, messages));
    ways.push(await ourWay("gRPC", options.broker, topic, messages));
    ways.push(await javaWay(nameServer, topic, messages));
    const pid = processListeningOn(server.port);
    const otherCpuMs = (): number | undefined => (pid === undefined ? undefined : cpuOfFamilyMs(pid));
    const runs = new Map<string, Measurement[]>(ways.map(({ name }) => [name, []]));
    for (let run = 1; run <= options.runs; run += 1) {
      for (const way of ways) {
        context.progress(`${way.name}, run ${run} of ${options.runs}`);
        const meter = await startMeter({ serverCpuMs: () => 0, statements: async () => 0, otherCpuMs });
        runs.get(way.name)?.push(await way.send(meter));
      }
    }
    const of = (name: string): readonly Measurement[] => runs.get(name) ?? [];
    for (const { name } of ways) {
      const ratios = { ratioToGrpc: rounded(ratioOfRuns(of(name), of("gRPC")), 3) };
      const brokerCpuMsPer1000 = msPer1000(of(name), "otherCpuMs");
      context.report(
        resultOf({
          scenario: "rocketmq-producers",
          database,
          variant: name,
          ours: of(name),
          figures: {
            ...ratios,
            ratioToJava: rounded(ratioOfRuns(of(name), of("Java")), 3),
            brokerCpuMsPer1000,
            "slowest msg/s": rounded(Math.min(...of(name).map(rateOf)), 0),
          },
          targets: () =>
            name === "classic"
              ? [
                  atLeast("ratioToGrpc", ratios.ratioToGrpc, 1),
                  atMost("brokerCpuMsPer1000", brokerCpuMsPer1000, msPer1000(of("gRPC"), "otherCpuMs") ?? 0),
                ]
              : [],
        }),
      );
    }
  } finally {
    for (const way of ways) await way.close();
    await server.removeTopic(topic);
    await server.close();
  }
}

async function ourWay(name: string, url: string, topic: string, messages: number): Promise<Way> {
  const broker = await openBroker(url);
  let sent = 0;
  async function sendAll(count: number): Promise<void> {
    const first = sent;
    sent += count;
    let next = 0;
    async function call(): Promise<void> {
      for (let from = next; from < count; from = next) {
        next += CALL;
        const batch = messagesOf(topic, first + from, Math.min(CALL, count - from));
        const results = await broker.publish(batch, { signal: AbortSignal.timeout(30_000) });
        const refused = results.find(({ status }) => status !== "sent");
        if (refused !== undefined) throw new Error(`${name}: ${JSON.stringify(refused)}`);
      }
    }
    await Promise.all(Array.from({ length: CALLS }, call));
  }
  await broker.check();
  await sendAll(Math.min(messages, 10_000));
  return {
    name,
    async send(meter) {
      meter.restart();
      await sendAll(messages);
      return await meter.stop(messages);
    },
    close: () => broker.close(),
  };
}

async function javaWay(nameServer: string, topic: string, messages: number): Promise<Way> {
  const java = await startJavaProducer({
    nameServer,
    topic,
    messages,
    batch: BATCH,
    threads: JAVA_THREADS,
    body: BODY,
  });
  return {
    name: "Java",
    async send(meter) {
      meter.restart();
      const { cpuMs, wallMs } = await java.send();
      return { ...(await meter.stop(messages, wallMs)), clientCpuMs: cpuMs };
    },
    close: () => java.close(),
  };
}

function messagesOf(topic: string, from: number, count: number): OutgoingMessage[] {
  return Array.from({ length: count }, (_, index) => {
    const key = `key-${from + index}`;
    return {
      id: String(from + index),
      type: "order.created",
      key,
      topic,
      body: BODY,
      contentType: "application/json",
      orderingKey: undefined,
      attempt: 1,
      headers: {
        "rowpost-id": `order.created:${key}`,
        "rowpost-type": "order.created",
        "rowpost-key": key,
        "rowpost-attempt": "1",
      },
    };
  });
}
