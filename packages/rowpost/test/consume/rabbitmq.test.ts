/** rowpost/consume on RabbitMQ, with amqplib. */
import { connect } from "amqplib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { consumeRabbitmq } from "../../src/consume/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox, type Inbox } from "../../src/inbox/index.ts";
import { LONGEST_RETRY_MS } from "../../src/runtime/backoff.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createManualClock, createTcpProxy, type TcpProxy } from "../../src/testing/index.ts";
import { openTestQueues, publishTo, type TestQueues } from "../brokers/rabbitmq-queues.ts";
import { describeWithService } from "../services.ts";
import { type ConsumerPlace, describeConsumer } from "./cases.ts";

describeWithService("rabbitmq", "consume", ({ address }) => {
  const makePlace = (queueArguments: Readonly<Record<string, unknown>>) => async (): Promise<ConsumerPlace> => {
    const queues = await openTestQueues(address);
    const queue = await queues.create("consume", queueArguments);
    const broker = rabbitmq({ url: address });
    return {
      topic: queue,
      broker,
      async publishForeign(body) {
        queues.channel.sendToQueue(queue, Buffer.from(body));
        await queues.channel.checkQueue(queue);
      },
      consume: (options) => consumeRabbitmq({ ...options, queue, connect: () => connect(address) } as never),
      left: async () => (await queues.channel.checkQueue(queue)).messageCount,
      address: { kind: "rabbitmq", url: address, queue },
      async drop() {
        await broker.close();
        await queues.close();
      },
    };
  };

  describeConsumer("from a classic queue", makePlace({}), { keepsOrder: true, kills: 6 });
  describeConsumer("from a quorum queue", makePlace({ "x-queue-type": "quorum" }), { keepsOrder: true, kills: 6 });

  describe("what only RabbitMQ does", () => {
    const ends: (() => unknown)[] = [];
    let queues: TestQueues;
    let inbox: Inbox;
    beforeEach(async () => {
      queues = await openTestQueues(address);
      const database = sqlite({ file: ":memory:" });
      inbox = createInbox({ database, consumer: "points" });
      await inbox.migrate();
      ends.push(
        () => queues.close(),
        () => database.close(),
      );
    });
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    const publish = (queue: string, keys: readonly string[]): Promise<void> => publishTo({ address, queue, keys });

    /** A queue, and an address of the server that can be cut and muted. */
    async function queueBehindProxy(): Promise<{ proxy: TcpProxy; url: string; queue: string }> {
      const through = new URL(address);
      const proxy = await createTcpProxy({ target: { host: through.hostname, port: Number(through.port) } });
      ends.push(() => proxy.close());
      through.port = String(proxy.port);
      return { proxy, url: through.href, queue: await queues.create("consume") };
    }

    test("a connection that is cut is opened again, and what was not acknowledged is handled once", async () => {
      const { proxy, queue, url } = await queueBehindProxy();
      await publish(queue, ["a", "b", "c"]);
      const handled: string[] = [];
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const lost: string[] = [];
      const refused: unknown[] = [];
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        connect: () => connect(url),
        logger: {
          ...silentLogger,
          warn: (line, fields) => void (line.startsWith("a consumer lost") ? lost.push(line) : refused.push(fields)),
        },
        handler: async ({ key }) => {
          if (lost.length === 0) await held;
          handled.push(key);
        },
      });
      ends.push(() => consumption.close());
      await proxy.cut();
      await expect.poll(() => lost).toEqual(["a consumer lost its connection and opens another one"]);
      release();
      await expect.poll(() => handled.toSorted()).toEqual(["a", "b", "c"]);
      const told = ["a", "b", "c"].map((key) => expect.objectContaining({ key, answer: "handled" }));
      await expect.poll(() => refused).toEqual(expect.arrayContaining(told));
      await publish(queue, ["d"]);
      await expect.poll(() => handled.length).toBe(4);
      await consumption.close();
      expect((await queues.channel.checkQueue(queue)).messageCount).toBe(0);
    });

    test("a connection that ends again and again is not opened without a pause", async () => {
      const queue = await queues.create("consume");
      const clock = createManualClock();
      const lost: string[] = [];
      let opened = 0;
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        clock,
        handler: () => undefined,
        logger: { ...silentLogger, warn: (line) => void lost.push(line) },
        connect: async () => {
          opened += 1;
          const connection = await connect(address);
          ends.push(() => connection.close().catch(() => undefined));
          return connection;
        },
      });
      ends.push(() => consumption.close());
      await queues.channel.deleteQueue(queue);
      await expect.poll(() => lost).toEqual(["a consumer lost its connection and opens another one"]);
      expect(opened).toBe(1);
      await clock.advance(LONGEST_RETRY_MS);
      await expect.poll(() => opened).toBe(2);
    });

    test("close does not wait for a server that is silent, and a connection that comes later is closed", async () => {
      const { proxy, queue, url } = await queueBehindProxy();
      let opened = 0;
      const closed: number[] = [];
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        logger: "silent",
        handler: () => undefined,
        connect: async () => {
          opened += 1;
          const number = opened;
          const connection = await connect(url);
          connection.on("close", () => closed.push(number));
          return connection;
        },
      });
      proxy.mute();
      await proxy.cut();
      await expect.poll(() => opened).toBe(2);
      expect(await consumption.close()).toEqual({ drained: true });
      proxy.unmute();
      await expect.poll(() => closed).toContain(2);
    });

    test("a server that accepts and says nothing is given up, and what it says later is closed", async () => {
      const { proxy, queue, url } = await queueBehindProxy();
      proxy.mute();
      const closed: string[] = [];
      const opening = consumeRabbitmq({
        inbox,
        queue,
        connectTimeoutMs: 200,
        handler: () => undefined,
        connect: async () => {
          const connection = await connect(url);
          connection.on("close", () => closed.push("closed"));
          return connection;
        },
      });
      await expect(opening).rejects.toMatchObject({ code: "DEADLINE" });
      proxy.unmute();
      await expect.poll(() => closed).toEqual(["closed"]);
    });

    test("a consumer that the server cancels is begun again when its queue is back", async () => {
      const queue = await queues.create("consume");
      const handled: string[] = [];
      const lost: string[] = [];
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        connect: () => connect(address),
        logger: { ...silentLogger, error: (line) => void lost.push(line) },
        handler: ({ key }) => handled.push(key),
      });
      ends.push(() => consumption.close());
      await queues.channel.deleteQueue(queue);
      await expect.poll(() => lost).toEqual(["a consumer cannot open its connection; it goes on trying"]);
      await queues.channel.assertQueue(queue, { durable: true });
      await publish(queue, ["a"]);
      await expect.poll(() => handled).toEqual(["a"]);
    });

    test("a message that is given up goes to the dead letter exchange", async () => {
      const dead = await queues.create("dead");
      const queue = await queues.create("consume", { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead });
      await publish(queue, ["a"]);
      queues.channel.sendToQueue(queue, Buffer.from("who am I"));
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        connect: () => connect(address),
        unhandled: "dead-letter",
        logger: "silent",
        retry: { maxAttempts: 2, baseMs: 1 },
        handler: () => {
          throw new Error("never");
        },
      });
      ends.push(() => consumption.close());
      await expect.poll(async () => (await queues.channel.checkQueue(dead)).messageCount).toBe(2);
      await consumption.close();
      expect((await queues.channel.checkQueue(queue)).messageCount).toBe(0);
    });

    test("a database that is away costs no delivery of a quorum queue, which would drop the message", async () => {
      const queue = await queues.create("consume", { "x-queue-type": "quorum", "x-delivery-limit": 3 });
      await publish(queue, ["a", "b", "c"]);
      const handled: string[] = [];
      const lines: string[] = [];
      let isAway = true;
      let tries = 0;
      const consumption = await consumeRabbitmq({
        inbox: "none",
        queue,
        connect: () => connect(address),
        retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
        logger: { ...silentLogger, warn: (line) => void lines.push(line), error: (line) => void lines.push(line) },
        async transaction(work) {
          tries += 1;
          if (isAway) throw new Error("the database is away");
          return await work({ query: async () => [] } as never);
        },
        handler: ({ key }) => handled.push(key),
      });
      ends.push(() => consumption.close());
      // With three deliveries each, and two tries for each delivery, none would be left.
      await expect.poll(() => tries).toBeGreaterThan(3 * 2 * 4);
      isAway = false;
      await expect.poll(() => handled.toSorted()).toEqual(["a", "b", "c"]);
      await consumption.close();
      expect((await queues.channel.checkQueue(queue)).messageCount).toBe(0);
      const stays = "a message cannot be handed to its handler and stays here, to be tried again";
      expect(lines.toSorted()).toEqual([
        ...Array.from({ length: 3 }, () => stays),
        ...Array.from({ length: 3 }, () => "a message was not handled and is tried again"),
      ]);
    });

    test("no more messages are in memory than the prefetch", async () => {
      const queue = await queues.create("consume");
      const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
      await publish(queue, keys);
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const seen: string[] = [];
      const consumption = await consumeRabbitmq({
        inbox,
        queue,
        connect: () => connect(address),
        concurrency: 1,
        prefetch: 3,
        orderBy: (message) => {
          seen.push(message.key);
          return message.key;
        },
        handler: () => held,
      });
      ends.push(() => consumption.close());
      await expect.poll(() => seen.length).toBe(3);
      expect((await queues.channel.checkQueue(queue)).messageCount).toBe(17);
      release();
      await expect.poll(() => seen.length).toBe(20);
    });

    test("a queue that is not there is said at once", async () => {
      const options = { inbox, queue: queues.name("none"), connect: () => connect(address), handler: () => undefined };
      await expect(consumeRabbitmq(options)).rejects.toThrow(/NOT_FOUND/);
    });
  });
});
