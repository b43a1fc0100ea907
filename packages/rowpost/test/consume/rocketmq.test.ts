/** rowpost/consume on RocketMQ 5: our own consumer against the real proxy. */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { OutgoingMessage } from "../../src/brokers/broker.ts";
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import {
  type Consumption,
  consumeRocketmq,
  type DeliveredMessage,
  type RocketmqConsumeOptions,
} from "../../src/consume/index.ts";
import type { Database } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createInbox, type Inbox, MissingIdentityError } from "../../src/inbox/index.ts";
import { BrokerError } from "../../src/runtime/errors.ts";
import { type Logger, silentLogger } from "../../src/runtime/logger.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import {
  createGroup,
  createTopic,
  deleteGroup,
  deleteTopic,
  messageCount,
  type PrivateServer,
  type ServerAddress,
  serverAddress,
  startPrivateServer,
  uniqueName,
} from "../brokers/rocketmq-server.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { countingHandler } from "./counting.ts";

const PROGRAM = fileURLToPath(new URL("./consumer.process.mjs", import.meta.url));
const SCRIPT = fileURLToPath(new URL("../../../../tools/services/rocketmq", import.meta.url));
/** The least that the server takes. */
const INVISIBLE_MS = 10_000;

const ends: (() => unknown)[] = [];
const children = new Set<ChildProcess>();
let made: TestDatabase;
let database: Database;
let inbox: Inbox;
beforeEach(async () => {
  made = await createTestDatabase("postgres");
  database = postgres({ url: made.url });
  inbox = createInbox({ database, consumer: "points" });
  await inbox.migrate();
  await database.transaction((tx) =>
    tx.query("CREATE TABLE effects (id BIGSERIAL PRIMARY KEY, message TEXT NOT NULL)"),
  );
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  for (const end of ends.splice(0).reverse()) await end();
  await database.close();
  await made.drop();
});

async function effects(): Promise<string[]> {
  const rows = await database.transaction((tx) => tx.query("SELECT message FROM effects ORDER BY id"));
  return (rows as { message: string }[]).map((row) => row.message);
}

async function work({ key }: DeliveredMessage, { tx }: { tx: { query(text: string, values: unknown[]): unknown } }) {
  await tx.query("INSERT INTO effects (message) VALUES ($1)", [key]);
}

interface Place {
  readonly server: ServerAddress;
  readonly topic: string;
  readonly group: string;
}

async function makePlace(server: ServerAddress, type: "NORMAL" | "FIFO" = "NORMAL"): Promise<Place> {
  const topic = await createTopic(server, uniqueName("consume"), type);
  ends.push(() => deleteTopic(server, topic).catch(() => undefined));
  const group = await createGroup(server, uniqueName("consume"), { orderly: type === "FIFO" });
  return { server, topic, group };
}

async function publish({ server, topic }: Place, messages: readonly OutgoingMessage[]): Promise<void> {
  const endpoints = `127.0.0.1:${server.port}`;
  const broker = rocketmq({ endpoints, ...server.keys, unorderedTopic: "publish" });
  const results = await broker.publish(
    messages.map((message) => ({ ...message, topic })),
    noDeadline(),
  );
  await broker.close();
  expect(results.filter(({ status }) => status !== "sent")).toEqual([]);
}

type Options = Partial<RocketmqConsumeOptions> & Pick<RocketmqConsumeOptions, "handler">;

async function consume({ group, server, topic }: Place, options: Options): Promise<Consumption> {
  const consumption = await consumeRocketmq({
    endpoints: `127.0.0.1:${server.port}`,
    ...server.keys,
    group,
    topics: [topic],
    inbox,
    invisibleMs: INVISIBLE_MS,
    retry: { baseMs: 1, maxMs: 5 },
    logger: "silent",
    ...options,
  });
  ends.push(() => consumption.close());
  return consumption;
}

/** Keys `group-number`. */
const keyed = (groups: number, count: number): OutgoingMessage[] =>
  Array.from({ length: count }, (_, index) =>
    outgoing(`${index % groups}-${index}`, { orderingKey: String(index % groups) }),
  );

function expectInOrder(keys: readonly string[], messages: readonly OutgoingMessage[]): void {
  for (const group of new Set(messages.map(({ orderingKey }) => orderingKey ?? ""))) {
    const ofGroup = (key: string): boolean => key.startsWith(`${group}-`);
    expect(keys.filter(ofGroup)).toEqual(messages.map(({ key }) => key).filter(ofGroup));
  }
}

describeWithService("rocketmq", "consume", ({ address }) => {
  const server = serverAddress(address);

  test("a message with all its parts is handled once, a second copy not at all", async () => {
    const place = await makePlace(server);
    const headers = { ...outgoing("单 4711").headers, city: "上\n海" };
    const message = outgoing("单 4711", { headers, body: '{"total":"9.90"}' });
    await publish(place, [message, message, outgoing("4712")]);
    const received: DeliveredMessage[] = [];
    await consume(place, { handler: (each) => received.push(each) });
    await expect.poll(() => received.map(({ key }) => key).toSorted()).toEqual(["4712", "单 4711"]);
    const [first] = received.filter(({ key }) => key === "单 4711");
    expect(first).toMatchObject({ type: "order.created", attempt: 1, topic: place.topic });
    expect(first?.headers).toMatchObject({ "rowpost-key": "单 4711", city: "上\n海" });
    expect(first?.json()).toEqual({ total: "9.90" });
  });

  test("messages of the official Java producer are handled in the order of their groups", async () => {
    const place = await makePlace(server, "FIFO");
    const arguments_ = ["produce", place.topic, "--count", "40", "--groups", "4", "--type", "order.paid"];
    const env = { ...process.env, ROCKETMQ_GRPC_PORT: String(server.port) };
    await promisify(execFile)(SCRIPT, arguments_, { env, timeout: 200_000 });
    const received: DeliveredMessage[] = [];
    await consume(place, { handler: (message) => received.push(message) });
    await expect.poll(() => received.length).toBe(40);
    expectInOrder(
      received.map(({ key }) => key),
      keyed(4, 40),
    );
    expect(received[0]).toMatchObject({ type: "order.paid", orderingKey: expect.stringMatching(/^[0-3]$/) });
    expect(received[0]?.json()).toEqual({ order: received[0]?.key });
  });

  test("only the types that its tags name come", async () => {
    const place = await makePlace(server);
    await publish(place, [outgoing("1", { type: "order.paid" }), outgoing("2", { type: "order.shipped" })]);
    const received: string[] = [];
    await consume(place, { tags: "order.shipped", handler: ({ type }) => received.push(type) });
    await expect.poll(() => received).toEqual(["order.shipped"]);
  });

  test("messages of a group are handled in their order, although some are given up and tried again", async () => {
    const place = await makePlace(server, "FIFO");
    const messages = keyed(3, 18);
    await publish(place, messages);
    const failing = new Set(["0-3", "1-4"]);
    const handled: string[] = [];
    let attempts = 0;
    await consume(place, {
      retry: { maxAttempts: 1, maxMs: 1 },
      handler: ({ key }) => {
        if (failing.delete(key)) {
          attempts += 1;
          throw new Error("not yet");
        }
        handled.push(key);
      },
    });
    await expect.poll(() => handled.length, { timeout: 60_000 }).toBe(messages.length);
    expect(attempts).toBe(2);
    expectInOrder(handled, messages);
  });

  test("a message of a group that fails for long makes no dead letters of those behind it", async () => {
    const place = await makePlace(server, "FIFO");
    const group = await createGroup(server, uniqueName("consume"), { orderly: true, retries: 2 });
    const messages = keyed(1, 3);
    await publish(place, messages);
    const handled: string[] = [];
    const lines = new Set<string>();
    let failures = 0;
    await consume(
      { ...place, group },
      {
        logger: { ...silentLogger, error: (line) => void lines.add(line) },
        retry: { maxAttempts: 1, maxMs: 1 },
        handler: ({ key }) => {
          if (key === "0-0" && failures < 6) {
            failures += 1;
            throw new Error("not yet");
          }
          handled.push(key);
        },
      },
    );
    await expect.poll(() => handled, { timeout: 20_000 }).toEqual(messages.map(({ key }) => key));
    expect(await messageCount(server, `%DLQ%${group}`).catch(() => 0)).toBe(0);
    expect([...lines]).toEqual(["a message was not handled and stays here, to be tried again"]);
  });

  test("an acknowledgment that the server does not take is told with the message, which comes again", async () => {
    const place = await makePlace(server);
    await publish(place, [outgoing("4711")]);
    const told: unknown[] = [];
    await consume(place, {
      logger: { ...silentLogger, warn: (_line, fields) => void told.push(fields) },
      handler: () => deleteTopic(server, place.topic),
    });
    const refused = { type: "order.created", key: "4711", answer: "handled", error: expect.any(BrokerError) };
    await expect.poll(() => told).toContainEqual(expect.objectContaining(refused));
  });

  test("what was on its way to a consumer that closes is given back", async () => {
    const place = await makePlace(server);
    const proxy = await createTcpProxy({ target: { port: server.port } });
    ends.push(() => proxy.close());
    const unwanted = (): void => expect.unreachable("handled by one that closes");
    const hour = 3_600_000;
    const through = { ...place, server: { ...server, port: proxy.port } };
    const first = await consume(through, { handler: unwanted, invisibleMs: hour });
    const sent: number[] = [];
    await expect.poll(() => sent.push(proxy.bytesToTarget()) > 1 && sent.at(-1) === sent.at(-2)).toBe(true);
    // The server has handed it over when it hears of the close.
    proxy.delayMs = 200;
    await publish(place, [outgoing("4711")]);
    expect(await first.close()).toEqual({ drained: true });
    const handled: string[] = [];
    await consume(place, { handler: ({ key }) => handled.push(key) });
    await expect.poll(() => handled).toEqual(["4711"]);
  });

  test("a group that is gone later is told, as at the start", async () => {
    const place = await makePlace(server);
    const proxy = await createTcpProxy({ target: { port: server.port } });
    ends.push(() => proxy.close());
    const told: unknown[] = [];
    const handled: string[] = [];
    await consume(
      { ...place, server: { ...server, port: proxy.port } },
      {
        handler: ({ key }) => handled.push(key),
        logger: { ...silentLogger, warn: (line, fields) => void told.push([line, fields]) },
      },
    );
    // It polls by then. When no poll is under way the server takes the group again after the cut.
    await publish(place, [outgoing("4711")]);
    await expect.poll(() => handled).toEqual(["4711"]);
    await deleteGroup(server, place.group);
    await proxy.cut();
    const what = `RocketMQ group ${place.group}`;
    const line = ["a consumer cannot receive; it goes on trying", expect.objectContaining({ what })];
    await expect.poll(() => told, { timeout: 60_000 }).toContainEqual(line);
  });

  test("a connection that is cut before the first poll is no pause", async () => {
    const place = await makePlace(server);
    const proxy = await createTcpProxy({ target: { port: server.port } });
    ends.push(() => proxy.close());
    const handled: string[] = [];
    const told: unknown[] = [];
    await consume(
      { ...place, server: { ...server, port: proxy.port } },
      {
        handler: ({ key }) => handled.push(key),
        logger: { ...silentLogger, warn: (_line, fields) => void told.push(fields?.["what"]) },
      },
    );
    await proxy.cut();
    await publish(place, [outgoing("4711")]);
    // The look at brokers that have come is every 30 s.
    await expect.poll(() => handled, { timeout: 20_000 }).toEqual(["4711"]);
    expect(told).toContain(`RocketMQ topic ${place.topic} for the group ${place.group}`);
  });

  test("a dead letter of a group lets those behind it go on", async () => {
    const place = await makePlace(server, "FIFO");
    await publish(place, keyed(1, 3));
    const handled: string[] = [];
    await consume(place, {
      unhandled: "dead-letter",
      retry: { maxAttempts: 1 },
      handler: ({ key }) => {
        if (key === "0-0") throw new Error("never");
        handled.push(key);
      },
    });
    await expect.poll(() => handled, { timeout: 20_000 }).toEqual(["0-1", "0-2"]);
    await expect.poll(() => messageCount(server, `%DLQ%${place.group}`).catch(() => 0)).toBe(1);
  });

  test("one without identity is parked where it is told", async () => {
    const place = await makePlace(server);
    await publish(place, [outgoing("1", { headers: {} }), outgoing("2")]);
    const parked: unknown[] = [];
    const received: string[] = [];
    await consume(place, {
      handler: ({ key }) => received.push(key),
      unhandled: (_raw, error) => parked.push(error),
    });
    await expect.poll(() => [received, parked.length]).toEqual([["2"], 1]);
    expect(parked[0]).toBeInstanceOf(MissingIdentityError);
  });

  test("one that is given up becomes a dead letter of the group", async () => {
    const place = await makePlace(server);
    await publish(place, [outgoing("1")]);
    await consume(place, {
      unhandled: "dead-letter",
      retry: { maxAttempts: 1 },
      handler: () => {
        throw new Error("never");
      },
    });
    await expect.poll(() => messageCount(server, `%DLQ%${place.group}`).catch(() => 0)).toBe(1);
  });

  test("one that is not handled in its last delivery is told with the place of the dead letters", async () => {
    const place = await makePlace(server);
    const group = await createGroup(server, uniqueName("consume"), { retries: 1 });
    await publish(place, [outgoing("1")]);
    const told: unknown[] = [];
    await consume(
      { ...place, group },
      {
        logger: {
          ...silentLogger,
          error: (line, fields) => void (line.includes("last delivery") && told.push(fields)),
        },
        retry: { maxAttempts: 1, maxMs: 1 },
        handler: () => {
          throw new Error("never");
        },
      },
    );
    await expect.poll(() => messageCount(server, `%DLQ%${group}`).catch(() => 0), { timeout: 60_000 }).toBe(1);
    const fields = { topic: place.topic, group, deadLetters: `%DLQ%${group}` };
    expect(told).toEqual([expect.objectContaining({ ...fields, deliveryAttempt: 2 })]);
  });

  test("a handler that takes longer than the server waits has its message to itself", async () => {
    const place = await makePlace(server);
    await publish(place, [outgoing("slow"), outgoing("next")]);
    const deliveries: string[] = [];
    const orderBy = ({ key }: DeliveredMessage): string => {
      deliveries.push(key);
      return key;
    };
    let isDone = false;
    const consumption = await consume(place, {
      orderBy,
      handler: async ({ key }, { tx }) => {
        if (key === "slow") await delay(INVISIBLE_MS + 3_000);
        await work({ key } as DeliveredMessage, { tx });
        isDone ||= key === "slow";
      },
    });
    await expect.poll(() => isDone, { timeout: 40_000 }).toBe(true);
    expect(await consumption.close()).toEqual({ drained: true });
    expect(deliveries.toSorted()).toEqual(["next", "slow"]);
  });

  test("close under load waits for its handlers, and the next consumer has the rest", async () => {
    const place = await makePlace(server);
    const messages = keyed(12, 120);
    await publish(place, messages);
    const { handled, handler, running } = countingHandler();
    const first = await consume(place, { handler, concurrency: 4 });
    await expect.poll(() => handled.length).toBeGreaterThan(10);
    expect([await first.close(), running()]).toEqual([{ drained: true }, 0]);
    await consume(place, { handler, concurrency: 4 });
    await expect.poll(() => handled.length, { timeout: 40_000 }).toBe(messages.length);
    expect(new Set(handled).size).toBe(messages.length);
  });

  test("a process that is killed loses nothing, repeats no effect, and keeps the order of groups", async () => {
    const place = await makePlace(server, "FIFO");
    const messages = keyed(6, 90);
    await publish(place, messages);
    const argument = {
      kind: "rocketmq",
      endpoints: `127.0.0.1:${server.port}`,
      group: place.group,
      topic: place.topic,
      databaseUrl: made.url,
      invisibleMs: INVISIBLE_MS,
    };
    for (const handles of [15, 20, Number.POSITIVE_INFINITY]) {
      const child = fork(PROGRAM, [JSON.stringify(argument)], { execArgv: [] });
      children.add(child);
      const ended = once(child, "exit");
      let left = handles;
      child.on("message", () => {
        left -= 1;
        if (left === 0) child.kill("SIGKILL");
      });
      if (handles === Number.POSITIVE_INFINITY) {
        await expect.poll(async () => (await effects()).length, { timeout: 90_000 }).toBe(messages.length);
        child.send("close");
      }
      await ended;
      children.delete(child);
    }
    const committed = await effects();
    expect(committed.toSorted()).toEqual(messages.map(({ key }) => key).toSorted());
    expectInOrder(committed, messages);
  }, 150_000);

  test("a group, a topic or a server that is not there is said at once, with what to do", async () => {
    const place = await makePlace(server);
    const handler = (): void => undefined;
    const unknownGroup = consume({ ...place, group: uniqueName("none") }, { handler });
    await expect(unknownGroup).rejects.toThrow(/does not take the group .*updateSubGroup/);
    await expect(consume({ ...place, topic: uniqueName("none") }, { handler })).rejects.toThrow(BrokerError);
    const away = { ...place, server: { port: 1 } };
    await expect(consume(away, { handler })).rejects.toMatchObject({ code: "CANNOT_CONSUME", retriable: true });
  });
});

// The test starts its own; the shared one tells that what is needed for that is here.
describeWithService("rocketmq", "consume from a broker of its own", () => {
  let server: PrivateServer;
  beforeEach(async () => {
    server = await startPrivateServer();
    ends.unshift(() => server.remove());
  });

  test("that is killed, every message has one effect", { timeout: 240_000 }, async () => {
    const place = await makePlace(server);
    const messages = keyed(12, 240);
    const keys = messages.map(({ key }) => key);
    await publish(place, messages.slice(0, 120));
    const lines: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (line) => void lines.push(line) };
    let handled = 0;
    await consume(place, {
      logger,
      handler: async (message, context) => {
        await work(message, context);
        handled += 1;
      },
    });
    await expect.poll(() => handled, { timeout: 60_000 }).toBeGreaterThanOrEqual(30);
    await server.kill();
    await server.start();
    await publish(place, messages.slice(120));
    await expect.poll(async () => new Set(await effects()).size, { timeout: 120_000 }).toBe(keys.length);
    expect((await effects()).toSorted()).toEqual(keys.toSorted());
    expect(lines).toContain("a consumer cannot receive; it goes on trying");
  });
});
