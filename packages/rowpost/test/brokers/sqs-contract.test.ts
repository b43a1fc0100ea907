/**
 * The SQS broker on an ElasticMQ of its own, that is killed and frozen: the broker contract, then
 * what it does not ask.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { decodeSqsMessage, type SqsMessage, type SqsOptions, sqs } from "../../src/brokers/sqs/index.ts";
import { type BrokerHarness, createReceivedLog, createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { counts, endsByItself } from "./outcomes.ts";
import { type Admin, createAdmin, PLACE, type PrivateElasticmq, startElasticmq, uniqueQueue } from "./sqs-server.ts";

const TOPICS = { main: "orders", other: "billing", ordered: "ledger.fifo", unknown: "nowhere" };
const LIMIT = 262_144;

describeWithService("elasticmq", "the SQS broker and its faults", () => {
  let server: PrivateElasticmq;
  let admin: Admin;

  beforeAll(async () => {
    server = await startElasticmq();
    admin = createAdmin(`http://127.0.0.1:${server.port}`);
    for (const name of [TOPICS.main, TOPICS.other, TOPICS.ordered]) await admin.create(name);
  });

  afterAll(async () => {
    admin?.close();
    await server?.remove();
  });

  const create = (options: Partial<SqsOptions> = {}): Broker =>
    sqs({ ...PLACE, endpoint: `http://127.0.0.1:${server.port}`, connectTimeoutMs: 1000, ...options });

  async function harness(): Promise<BrokerHarness> {
    const proxy = await createTcpProxy({ target: { port: server.port } });
    const log = createReceivedLog();
    return {
      name: "sqs",
      createBroker: () => create({ endpoint: `http://127.0.0.1:${proxy.port}` }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined },
      topics: TOPICS,
      refusedBodyBytes: LIMIT + 1,
      bigBodyBytes: 150_000,
      async consume(request) {
        const endsAt = performance.now() + request.withinMs;
        for (;;) {
          for (const message of await admin.take(request.topic).catch(() => [])) {
            const { headers, ...rest } = decodeSqsMessage(message);
            const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
            log.add(request.topic, { ...rest, headers: Object.fromEntries(lower), receivedAtMs: Date.now() });
          }
          const found = await log.consume({ ...request, withinMs: 10 });
          const isEnough = new Set(found.map(({ headers }) => headers["rowpost-key"])).size >= request.count;
          if (isEnough || performance.now() > endsAt) return found;
        }
      },
      faults: proxy,
      async restart() {
        await server.stop();
        await server.start();
      },
      recoverWithinMs: 30_000,
      close: () => proxy.close(),
    };
  }

  bindBrokerContract("sqs", harness);

  /** Of each test: what others leave behind is not in there. */
  let loose = "";
  let fifo = "";
  beforeEach(async () => {
    [loose, fifo] = [uniqueQueue(), uniqueQueue(".fifo")];
    for (const name of [loose, fifo]) await admin.create(name);
  });

  const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
    outgoing(key, { topic: loose, ...changes });

  async function takeAll(topic: string, count: number): Promise<SqsMessage[]> {
    const taken: SqsMessage[] = [];
    while (taken.length < count) {
      const some = await admin.take(topic, 5);
      if (some.length === 0) break;
      taken.push(...some);
    }
    return taken;
  }

  const keyOf = (taken: SqsMessage): string | undefined => decodeSqsMessage(taken).headers["rowpost-key"];

  test("a FIFO queue drops the copy of a second attempt, and takes one that is wanted again", async () => {
    const broker = create();
    const publish = async (changes: Partial<OutgoingMessage>, key = "f-1"): Promise<void> => {
      const results = await broker.publish([message(key, { topic: fifo, ...changes })], noDeadline());
      expect(counts(results)).toEqual({ sent: 1 });
    };
    await publish({ attempt: 1 });
    await publish({ attempt: 2 });
    await publish({ attempt: 3, resend: true });
    await publish({}, "f-end");
    const taken = await takeAll(fifo, 3);
    expect(taken.map(keyOf).filter((key) => key === "f-1")).toHaveLength(2);
    expect(taken).toHaveLength(3);
    expect(await admin.take(fifo)).toEqual([]);
    await broker.close();
  });

  test("the group is the ordering key; a message without one has a group of its own; odd keys do not meet", async () => {
    const broker = create();
    const keys = ["customer-1", "customer-1", "客户 1", "客户 2", undefined, undefined];
    const batch = keys.map((orderingKey, index) => message(`g-${index}`, { topic: fifo, orderingKey }));
    expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: 6 });
    const taken = (await takeAll(fifo, 6)) as (SqsMessage & { Attributes?: Record<string, string> })[];
    const groups = new Map(taken.map((each) => [keyOf(each), each.Attributes?.["MessageGroupId"]]));
    expect(groups.get("g-0")).toBe("customer-1");
    expect(groups.get("g-1")).toBe("customer-1");
    expect(new Set(groups.values()).size).toBe(5);
    await broker.close();
  });

  test("more than ten headers, and those that SQS cannot carry, arrive as they were published", async () => {
    const broker = create();
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-${index}`, `value ${index}`]));
    const headers = { ...message("h-1").headers, ...many, "a b": "1", "AWS.x": "2", empty: "", odd: "\u0001\ud800" };
    expect(counts(await broker.publish([message("h-1", { headers })], noDeadline()))).toEqual({ sent: 1 });
    const [taken] = await takeAll(loose, 1);
    expect(Object.keys(taken?.MessageAttributes ?? {})).toHaveLength(10);
    expect(decodeSqsMessage(taken ?? {})).toMatchObject({ headers, contentType: "application/json" });
    await broker.close();
  });

  test("requests stay below the limit together, and a message above it fails alone", async () => {
    const broker = create();
    const batch = Array.from({ length: 12 }, (_, index) => message(`s-${index}`, { body: "x".repeat(100_000) }));
    batch.splice(5, 0, message("s-large", { body: "x".repeat(LIMIT) }));
    const results = await broker.publish(batch, noDeadline());
    expect(counts(results)).toEqual({ sent: 12, message: 1 });
    expect(results[5]).toMatchObject({ scope: "message", retriable: false, code: "MESSAGE_TOO_LARGE" });
    expect(await takeAll(loose, 12)).toHaveLength(12);
    await broker.close();
  }, 60_000);

  test("a frozen server: unknown after the deadline, and close waits for nothing", async () => {
    const broker = create();
    expect(counts(await broker.publish([message("z-0")], noDeadline()))).toEqual({ sent: 1 });
    await server.freeze();
    try {
      const late = await broker.publish([message("z-1")], { signal: AbortSignal.timeout(500) });
      expect(late).toMatchObject([{ scope: "unknown", code: "DEADLINE" }]);
      const open = broker.publish([message("z-2")], noDeadline());
      await delay(50);
      await endsByItself("close", broker.close());
      expect(await open).toMatchObject([{ scope: "unknown" }]);
    } finally {
      await server.thaw();
    }
    await takeAll(loose, 3);
  }, 60_000);

  // ElasticMQ writes messages behind its answers: what SIGKILL takes with it proves nothing of AWS.
  test("kill -9 in the middle: what has no answer is unknown, the rest certainly not handed over, and all goes again", async () => {
    const broker = create();
    const failures = new Set<string>();
    for (let call = 0; call < 6; call += 1) {
      const batch = Array.from({ length: 200 }, (_, index) => message(`k-${call}-${index}`));
      const publishing = broker.publish(batch, noDeadline());
      if (call === 3) await server.kill();
      for (const result of await publishing) if (result.status === "failed") failures.add(result.scope);
    }
    expect(failures).toContain("connection");
    for (const scope of failures) expect(["unknown", "connection"]).toContain(scope);
    await expect(broker.check()).rejects.toThrow(/ECONNREFUSED/);
    await server.start();
    // Its queues too are written behind its answers, and read after its port is open.
    await admin.create(loose);
    expect(counts(await broker.publish([message("k-again")], noDeadline()))).toEqual({ sent: 1 });
    await broker.close();
  }, 90_000);
});
