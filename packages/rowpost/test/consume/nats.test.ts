/** rowpost/consume on NATS JetStream. */
import { AckPolicy, type ConsumerConfig, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, describe, expect, test } from "vitest";
import { nats } from "../../src/brokers/nats/index.ts";
import { consumeNats, type NatsConsumeOptions } from "../../src/consume/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox, type Inbox } from "../../src/inbox/index.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/index.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { type PrivateServer, startPrivateServer, uniqueName } from "../brokers/nats-server.ts";
import { gate } from "../queue/members.ts";
import { describeWithService } from "../services.ts";
import { type ConsumerPlace, describeConsumer } from "./cases.ts";

const ACK_WAIT_MS = 1_000;
const DURABLE = "points";

interface NatsPlace extends ConsumerPlace {
  readonly stream: string;
  info(): Promise<{ readonly pending: number; readonly unacknowledged: number }>;
  /** A pull that waits for no message; to be called when there is none. */
  pullNothing(): Promise<void>;
}

async function makePlace(servers: string, config: Partial<ConsumerConfig> = {}): Promise<NatsPlace> {
  const stream = uniqueName("consume");
  const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: stream, subjects: [stream] });
  await manager.consumers.add(stream, {
    durable_name: DURABLE,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ACK_WAIT_MS * 1_000_000,
    ...config,
  });
  const broker = nats({ servers });
  const info = async (): Promise<{ readonly pending: number; readonly unacknowledged: number }> => {
    const { num_ack_pending: unacknowledged, num_pending: pending } = await manager.consumers.info(stream, DURABLE);
    return { pending, unacknowledged };
  };
  return {
    topic: stream,
    stream,
    broker,
    info,
    async pullNothing() {
      const nothing = { batch: 1, expires: 100_000_000 };
      const answer = await connection.request(
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.${DURABLE}`,
        JSON.stringify(nothing),
      );
      expect(answer.headers?.code).toBe(408);
    },
    async publishForeign(body) {
      await connection.request(stream, body);
    },
    consume: (options) =>
      consumeNats({ ...options, connect: () => connect({ servers }), stream, durable: DURABLE } as never),
    async left() {
      const { ack_floor, delivered, ...counts } = await manager.consumers.info(stream, DURABLE);
      // NATS 2.9 takes its place back when the one who pulled goes: what is pending again is among
      // those that are not acknowledged, too.
      const unacknowledged = Math.min(counts.num_ack_pending, delivered.stream_seq - ack_floor.stream_seq);
      return counts.num_pending + unacknowledged;
    },
    address: { kind: "nats", servers, stream, durable: DURABLE },
    async drop() {
      await broker.close();
      await manager.streams.delete(stream).catch(() => undefined);
      await connection.close();
    },
  };
}

describeWithService("nats", "consume", ({ address }) => {
  const servers = new URL(address).host;

  describeConsumer("with a durable consumer", () => makePlace(servers), { keepsOrder: false, kills: 4 });

  describe("what only NATS does", () => {
    const ends: (() => unknown)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    async function place(config: Partial<ConsumerConfig> = {}, at = servers): Promise<NatsPlace> {
      const made = await makePlace(at, config);
      ends.push(() => made.drop());
      return made;
    }

    async function inbox(): Promise<Inbox> {
      const database = sqlite({ file: ":memory:" });
      ends.push(() => database.close());
      const made = createInbox({ database, consumer: "points" });
      await made.migrate();
      return made;
    }

    async function publish({ broker, topic }: ConsumerPlace, keys: readonly string[]): Promise<void> {
      const results = await broker.publish(
        keys.map((key) => outgoing(key, { topic, orderingKey: key.split("-")[0] })),
        noDeadline(),
      );
      expect(results.map(({ status }) => status)).toEqual(keys.map(() => "sent"));
    }

    async function consume(
      { stream }: NatsPlace,
      options: Partial<NatsConsumeOptions> & Pick<NatsConsumeOptions, "handler">,
    ) {
      const consumption = await consumeNats({
        inbox: await inbox(),
        connect: () => connect({ servers }),
        stream,
        durable: DURABLE,
        logger: "silent",
        retry: { baseMs: 1, maxMs: 5 },
        ...options,
      });
      ends.push(() => consumption.close());
      return consumption;
    }

    test("a handler that takes longer than the ack wait has its message to itself", async () => {
      const at = await place();
      await publish(at, ["slow", "next"]);
      const deliveries: string[] = [];
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const handled: string[] = [];
      await consume(at, {
        orderBy: ({ key }) => {
          deliveries.push(key);
          return key;
        },
        handler: async ({ key }) => {
          if (key === "slow") await held;
          handled.push(key);
        },
      });
      setTimeout(release, 3 * ACK_WAIT_MS);
      await expect.poll(() => handled.toSorted()).toEqual(["next", "slow"]);
      expect(deliveries.toSorted()).toEqual(["next", "slow"]);
    });

    test("one in its last delivery stays until it is handled, and one that is given up never comes again", async () => {
      const at = await place({ max_deliver: 2 });
      await publish(at, ["a"]);
      let failures = 0;
      const first = await consume(at, {
        retry: { maxAttempts: 1, maxMs: 1 },
        handler: () => {
          failures += 1;
          if (failures < 6) throw new Error("not yet");
        },
      });
      await expect.poll(() => failures).toBe(6);
      await first.close();
      expect(await at.left()).toBe(0);
      await publish(at, ["b"]);
      let calls = 0;
      const second = await consume(at, {
        unhandled: "dead-letter",
        retry: { maxAttempts: 1 },
        handler: () => {
          calls += 1;
          throw new Error("never");
        },
      });
      await expect.poll(() => at.left()).toBe(0);
      await second.close();
      expect(calls).toBe(1);
    });

    test.each([
      ["with a limit of deliveries, is told once", { max_deliver: 3 }, 1],
      ["without, is not", {}, 0],
    ])("at the start, a consumer %s", async (_title, config, times) => {
      const at = await place(config);
      const told: unknown[] = [];
      await consume(at, { logger: { ...silentLogger, warn: (...line) => told.push(line) }, handler: () => undefined });
      const line = "a process that dies loses what is in its last delivery: let max_deliver be without limit";
      const fields = { stream: at.stream, durable: DURABLE, maxDeliveries: 3 };
      expect(told).toEqual(Array.from({ length: times }, () => [line, fields]));
    });

    describe("in their last delivery", () => {
      const left = "a message was not handled in its last delivery, and the server brings it no more";

      /** A proxy that the consumer goes through. */
      async function through(): Promise<{ readonly proxy: TcpProxy; readonly connect: NatsConsumeOptions["connect"] }> {
        const { hostname, port } = new URL(address);
        const proxy = await createTcpProxy({ target: { host: hostname, port: Number(port) } });
        ends.push(() => proxy.close());
        const options = { servers: `127.0.0.1:${proxy.port}`, maxReconnectAttempts: -1, reconnectTimeWait: 50 };
        return { proxy, connect: () => connect(options) };
      }

      /** `a` is being handled until it is released, `b` of the same key waits behind it. */
      async function oneBehind(at: NatsPlace, options: Partial<NatsConsumeOptions> = {}) {
        await publish(at, ["k-a", "k-b"]);
        const handled: string[] = [];
        const seen: string[] = [];
        const held = gate();
        const consumption = await consume(at, {
          orderBy: ({ key }) => {
            seen.push(key);
            return "k";
          },
          handler: async ({ key }) => {
            if (key === "k-a") await held.opened;
            handled.push(key);
          },
          ...options,
        });
        await expect.poll(() => seen).toEqual(["k-a", "k-b"]);
        return { consumption, handled, release: held.open };
      }

      test("those that wait are handled at the close", async () => {
        const at = await place({ max_deliver: 1 });
        const { consumption, handled, release } = await oneBehind(at);
        const closing = consumption.close();
        release();
        expect(await closing).toEqual({ drained: true });
        expect(handled).toEqual(["k-a", "k-b"]);
        expect(await at.left()).toBe(0);
      });

      test("those that wait are handled after a cut that is longer than the ack wait", async () => {
        const at = await place({ max_deliver: 1 });
        const { proxy, connect } = await through();
        const { handled, release } = await oneBehind(at, { connect });
        await proxy.refuse();
        await proxy.cut();
        // With nobody who pulls the server does not look.
        await expect
          .poll(async () => {
            await at.pullNothing();
            return await at.info();
          })
          .toEqual({ pending: 0, unacknowledged: 0 });
        await proxy.accept();
        release();
        await expect.poll(() => handled).toEqual(["k-a", "k-b"]);
      });

      test("one that fails at the close as well is told, with its place", async () => {
        const at = await place({ max_deliver: 1 });
        const told: unknown[] = [];
        let calls = 0;
        const begun = gate();
        await publish(at, ["a"]);
        const consumption = await consume(at, {
          retry: { maxAttempts: 2, baseMs: 1, maxMs: 3_600_000 },
          logger: { ...silentLogger, error: (line, fields) => void (line === left && told.push(fields)) },
          handler: () => {
            calls += 1;
            if (calls === 2) begun.open();
            throw new Error("never");
          },
        });
        await begun.opened;
        expect(await consumption.close()).toEqual({ drained: true });
        expect(calls, "all its tries once more, or those that were left").toBeOneOf([2, 4]);
        expect(told).toEqual([{ stream: at.stream, streamSequence: 1, type: "order.created", key: "a" }]);
      });

      test("one that comes when the close has begun is handled within its time, or told", async () => {
        const at = await place({ max_deliver: 1 });
        const { proxy, connect } = await through();
        const told: unknown[] = [];
        const called: string[] = [];
        const consumption = await consume(at, {
          connect,
          drainTimeoutMs: 2_000,
          logger: { ...silentLogger, error: (line, fields) => void (line === left && told.push(fields)) },
          handler: ({ key }) => {
            called.push(key);
            return new Promise(() => undefined);
          },
        });
        proxy.mute("toClient");
        await publish(at, ["a"]);
        await expect.poll(async () => (await at.info()).unacknowledged).toBe(1);
        const closing = consumption.close();
        proxy.unmute();
        expect(await closing).toEqual({ drained: false });
        expect(called).toEqual(["a"]);
        expect(told).toEqual([{ stream: at.stream, streamSequence: 1, type: "order.created", key: "a" }]);
      });
    });

    test("what was on its way to a consumer that closes is given back at once", async () => {
      const hour = 3_600_000_000_000;
      const at = await place({ ack_wait: hour });
      const target = { host: new URL(address).hostname, port: Number(new URL(address).port) };
      const proxy = await createTcpProxy({ target });
      ends.push(() => proxy.close());
      const through = `127.0.0.1:${proxy.port}`;
      const first = await consume(at, {
        connect: () => connect({ servers: through }),
        handler: () => expect.unreachable("handled by one that closes"),
      });
      proxy.mute("toClient");
      await publish(at, ["a"]);
      await expect.poll(async () => (await at.info()).unacknowledged).toBe(1);
      const closing = first.close();
      proxy.unmute();
      expect(await closing).toEqual({ drained: true });
      const handled: string[] = [];
      await consume(at, { handler: ({ key }) => handled.push(key) });
      await expect.poll(() => handled).toEqual(["a"]);
    });

    test("no more messages are in memory than the prefetch", async () => {
      const at = await place();
      await publish(
        at,
        Array.from({ length: 20 }, (_, index) => `k${index}`),
      );
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const seen: string[] = [];
      await consume(at, {
        concurrency: 1,
        prefetch: 3,
        handler: () => held,
        orderBy: ({ key }) => {
          seen.push(key);
          return key;
        },
      });
      await expect.poll(() => seen.length).toBe(3);
      expect(await at.info()).toEqual({ pending: 17, unacknowledged: 3 });
      release();
      await expect.poll(() => seen.length).toBe(20);
    });

    test("a consumer that is not there, or acknowledges by itself, is said at once, with what to do", async () => {
      const at = await place();
      const missing = consume(at, { durable: "none", handler: () => undefined });
      await expect(missing).rejects.toThrow(/nats consumer add .* none --pull --ack explicit/);
      const careless = await place({ ack_policy: AckPolicy.All });
      await expect(consume(careless, { handler: () => undefined })).rejects.toThrow(/ack policy "all"/);
      await expect(consume(at, { stream: "a.b", handler: () => undefined })).rejects.toMatchObject({
        code: "CONFIGURATION",
      });
    });
  });

  describe("a server of its own", () => {
    const ends: (() => unknown)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    test.each([
      ["that the client comes back to by itself", {}],
      ["that the client gives up", { reconnect: false }],
    ])("%s is killed and started again, and every message is handled once", async (_title, options) => {
      const server: PrivateServer = await startPrivateServer();
      ends.push(() => server.remove());
      const at = await makePlace(server.address);
      ends.push(() => at.drop());
      const database = sqlite({ file: ":memory:" });
      ends.push(() => database.close());
      const inbox = createInbox({ database, consumer: "points" });
      await inbox.migrate();
      const keys = Array.from({ length: 60 }, (_, index) => `${index % 6}-${index}`);
      const messages = keys.map((key) => outgoing(key, { topic: at.topic, orderingKey: key.split("-")[0] }));
      await at.broker.publish(messages.slice(0, 30), noDeadline());
      const handled: string[] = [];
      let killing: Promise<void> | undefined;
      const consumption = await consumeNats({
        inbox,
        stream: at.stream,
        durable: DURABLE,
        logger: "silent",
        connect: () => connect({ servers: server.address, reconnectTimeWait: 50, ...options }),
        handler: async ({ key }) => {
          handled.push(key);
          if (handled.length === 10) killing = server.kill();
          await killing;
        },
      });
      ends.push(() => consumption.close());
      await expect.poll(() => handled.length).toBeGreaterThanOrEqual(10);
      await killing;
      await server.start();
      await expect
        .poll(async () =>
          (await at.broker.publish(messages.slice(30), noDeadline())).every(({ status }) => status === "sent"),
        )
        .toBe(true);
      await expect.poll(() => new Set(handled).size, { timeout: 20_000 }).toBe(keys.length);
      await expect.poll(() => at.left(), { timeout: 20_000 }).toBe(0);
      expect(handled.toSorted()).toEqual(keys.toSorted());
    });
  });
});
