/** rowpost/consume on RabbitMQ: what a quorum queue gives up when it has come back too often. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ChannelModel, connect } from "amqplib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Consumption, consumeRabbitmq, type RabbitmqConsumeOptions } from "../../src/consume/index.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openTestQueues, publishTo, type TestQueues } from "../brokers/rabbitmq-queues.ts";
import { gate } from "../queue/members.ts";
import { describeWithService } from "../services.ts";

const PROGRAM = fileURLToPath(new URL("./poison.process.mjs", import.meta.url));
const STAYS = "a message was not handled and stays here, to be tried again";
const DROPS = "the queue may drop messages that come back too often; give it a dead letter exchange";
const GOES_BACK = "a message goes back in what may be its last delivery; the queue may drop it";
const ALONE = "a message has come back often and is tried alone: does it end the process?";
const QUORUM = { "x-queue-type": "quorum" };

describeWithService("rabbitmq", "the delivery limit", ({ address }) => {
  const ends: (() => unknown)[] = [];
  const children = new Set<ChildProcess>();
  let queues: TestQueues;
  beforeEach(async () => {
    queues = await openTestQueues(address);
    ends.push(() => queues.close());
  });
  afterEach(async () => {
    for (const child of children) child.kill("SIGKILL");
    for (const end of ends.splice(0).reverse()) await end();
  });

  /** A quorum queue, and where its dead letters go. */
  async function limited(limit: number, more: object = {}): Promise<{ readonly queue: string; readonly dead: string }> {
    const dead = await queues.create("dead");
    const letters = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead };
    const queue = await queues.create("limit", { ...QUORUM, "x-delivery-limit": limit, ...letters, ...more });
    return { queue, dead };
  }

  const publish = (queue: string, keys: readonly string[]): Promise<void> => publishTo({ address, queue, keys });

  /** Takes what is there, and gives it back, so often. */
  async function returned(queue: string, messages: number, times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      const channel = await queues.connection.createChannel();
      const took = gate();
      let seen = 0;
      await channel.consume(queue, () => {
        seen += 1;
        if (seen === messages) took.open();
      });
      await took.opened;
      await channel.close();
      await expect.poll(() => inQueue(queue)).toBe(messages);
    }
  }

  const inQueue = async (queue: string): Promise<number> => (await queues.channel.checkQueue(queue)).messageCount;

  /** Keys of what is in a queue that nobody consumes. */
  async function keysIn(queue: string): Promise<string[]> {
    const keys: string[] = [];
    for (let next = await queues.take(queue); next !== undefined; next = await queues.take(queue))
      keys.push(String(next.properties.headers?.["rowpost-key"]));
    return keys.toSorted();
  }

  interface Started {
    readonly consumption: Consumption;
    /** Warnings and errors. */
    readonly lines: string[];
    readonly told: { readonly line: string; readonly fields: unknown }[];
  }

  async function consume(
    queue: string,
    options: Partial<RabbitmqConsumeOptions> & Pick<RabbitmqConsumeOptions, "handler">,
  ): Promise<Started> {
    const lines: string[] = [];
    const told: { line: string; fields: unknown }[] = [];
    const tell = (line: string, fields: unknown): void => {
      lines.push(line);
      told.push({ line, fields });
    };
    const consumption = await consumeRabbitmq({
      inbox: "none",
      queue,
      connect: () => connect(address),
      logger: { ...silentLogger, warn: tell, error: tell },
      retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
      ...options,
    });
    ends.push(() => consumption.close());
    return { consumption, lines, told };
  }

  test("what a handler fails at for long is handled in the end, whatever the limit is", async () => {
    const { dead, queue } = await limited(3);
    const keys = ["a", "b", "c", "d", "e"];
    await publish(queue, keys);
    const calls = new Map<string, number>();
    const handled: string[] = [];
    const { consumption, lines } = await consume(queue, {
      handler({ key }) {
        calls.set(key, (calls.get(key) ?? 0) + 1);
        // Five deliveries with two tries each.
        if ((calls.get(key) ?? 0) <= 10) throw new Error("not yet");
        handled.push(key);
      },
    });
    await expect.poll(async () => handled.length + (await inQueue(dead))).toBe(keys.length);
    expect(handled.toSorted()).toEqual(keys);
    await consumption.close();
    expect([await inQueue(queue), await keysIn(dead)]).toEqual([0, []]);
    expect(lines).toContain(STAYS);
  });

  test("one that stays holds up no other, not even of its key", async () => {
    const { queue } = await limited(20);
    await publish(queue, ["bad"]);
    await returned(queue, 1, 1);
    await publish(queue, ["bad", "a", "b"]);
    const handled: string[] = [];
    let calls = 0;
    const { lines } = await consume(queue, {
      concurrency: 1,
      retry: { maxAttempts: 1, maxMs: 3_600_000 },
      handler({ key }) {
        if (key === "bad") calls += 1;
        if (key === "bad" && calls === 1) throw new Error("not yet");
        handled.push(key);
      },
    });
    await expect.poll(() => handled).toEqual(["a", "b", "bad"]);
    expect(lines).toEqual([STAYS]);
  });

  test("one in its last delivery is tried once more in the close, and told when it goes back", async () => {
    const { dead, queue } = await limited(3);
    await publish(queue, ["a"]);
    await returned(queue, 1, 3);
    let calls = 0;
    const { consumption, lines, told } = await consume(queue, {
      deliveryLimit: 3,
      deadLetterExchange: true,
      retry: { maxAttempts: 1, maxMs: 3_600_000 },
      handler() {
        calls += 1;
        throw new Error("never");
      },
    });
    await expect.poll(() => lines).toContain(STAYS);
    expect(await consumption.close()).toEqual({ drained: true });
    expect(calls).toBe(2);
    const fields = { queue, messageId: "order.created:a", deliveries: 3, deliveryLimit: 3 };
    expect(told).toContainEqual({ line: GOES_BACK, fields: { ...fields, deadLetterExchange: true } });
    await expect.poll(() => keysIn(dead)).toEqual(["a"]);
  });

  test("a connection that ends tells what was in its last delivery", async () => {
    const { queue } = await limited(3);
    await publish(queue, ["a"]);
    await returned(queue, 1, 3);
    const begun = gate();
    let opened: ChannelModel | undefined;
    const { lines } = await consume(queue, {
      deliveryLimit: 3,
      deadLetterExchange: true,
      connect: async () => (opened = await connect(address)),
      handler() {
        begun.open();
        return new Promise(() => undefined);
      },
      drainTimeoutMs: 0,
    });
    await begun.opened;
    await opened?.close();
    await expect.poll(() => lines).toContain(GOES_BACK);
  });

  test.each([
    ["with a limit and no dead letter exchange", { deliveryLimit: 3 }, true],
    ["with a dead letter exchange", { deliveryLimit: 3, deadLetterExchange: true }, false],
    ["whose dead letter exchange is used", { deliveryLimit: 3, unhandled: "dead-letter" }, false],
    ["without a limit", { deliveryLimit: Infinity }, false],
    ["of which nothing is said", {}, false],
  ] as const)("at the start, a queue %s", async (_title, options, isWarned) => {
    const { queue } = await limited(3);
    const { told } = await consume(queue, { ...options, handler: () => undefined });
    const fields = { queue, deliveryLimit: 3, option: "deadLetterExchange: true" };
    expect(told).toEqual(isWarned ? [{ line: DROPS, fields }] : []);
  });

  test("a quorum queue of RabbitMQ 4 has a limit, which is told when it is seen to be one", async () => {
    const { queue } = await limited(3);
    await publish(queue, ["a", "b"]);
    await returned(queue, 2, 1);
    const handled: string[] = [];
    const { told } = await consume(queue, {
      async connect() {
        const connection = await connect(address);
        Object.assign(connection.connection.serverProperties, { version: "4.0.0" });
        return connection;
      },
      handler: ({ key }) => handled.push(key),
    });
    await expect.poll(() => handled.toSorted()).toEqual(["a", "b"]);
    const fields = { queue, deliveryLimit: 20, option: "deadLetterExchange: true" };
    expect(told).toEqual([{ line: DROPS, fields }]);
  });

  test("those that came often are tried one at a time, and the others beside them", async () => {
    const { queue } = await limited(20);
    const often = ["a", "b", "c"];
    await publish(queue, often);
    await returned(queue, often.length, 2);
    await publish(queue, ["d", "e"]);
    const begun: string[] = [];
    const gates = new Map(often.map((key) => [key, gate()]));
    const { told } = await consume(queue, {
      deliveryLimit: 4,
      deadLetterExchange: true,
      async handler({ key }) {
        begun.push(key);
        await gates.get(key)?.opened;
      },
    });
    await expect.poll(() => begun.toSorted()).toEqual(["a", "d", "e"]);
    expect(told).toEqual([
      { line: ALONE, fields: { queue, messageId: "order.created:a", deliveries: 2, deliveryLimit: 4 } },
    ]);
    gates.get("a")?.open();
    await expect.poll(() => begun.includes("b")).toBe(true);
    expect(begun).toHaveLength(4);
    for (const each of gates.values()) each.open();
    await expect.poll(() => begun.at(-1)).toBe("c");
  });

  test("with an odd count the last one is tried first", async () => {
    const { queue } = await limited(20);
    await publish(queue, ["a", "b", "c"]);
    await returned(queue, 3, 3);
    const handled: string[] = [];
    await consume(queue, { deliveryLimit: 4, deadLetterExchange: true, handler: ({ key }) => handled.push(key) });
    await expect.poll(() => handled).toEqual(["c", "b", "a"]);
  });

  describe("a message that ends its process", () => {
    const innocent = ["a", "b", "c", "d", "e", "f", "g"];

    /** Starts as many processes until one has handled what is left, and says what they wrote. */
    async function run(queue: string, dead: string, processes: number, options: object): Promise<string[]> {
      const folder = mkdtempSync(join(tmpdir(), "rowpost-poison-"));
      ends.push(() => rmSync(folder, { recursive: true }));
      const file = join(folder, "lines");
      const lines = (): string[] => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
      const isOver = async (): Promise<boolean> => {
        const missing = innocent.filter((key) => !lines().includes(key));
        return missing.length + 1 <= (await inQueue(dead));
      };
      async function keepRunning(): Promise<void> {
        while (!(await isOver())) {
          const child = fork(PROGRAM, [JSON.stringify({ file, url: address, queue, prefetch: 8, ...options })], {
            execArgv: [],
          });
          children.add(child);
          const ended = once(child, "exit");
          while (child.exitCode === null && child.signalCode === null && !(await isOver()))
            await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 20))]);
          if (child.connected) child.send("close", () => undefined);
          const [code] = await ended;
          children.delete(child);
          // Killed by the poison, or closed.
          expect(code).toBeOneOf([null, 0]);
        }
      }
      await Promise.all(Array.from({ length: processes }, keepRunning));
      return lines();
    }

    test("takes no other with it to the limit", async () => {
      const { dead, queue } = await limited(3);
      await publish(queue, [...innocent.slice(0, 3), "poison", ...innocent.slice(3)]);
      const lines = await run(queue, dead, 1, { deliveryLimit: 3, deadLetterExchange: true });
      expect(await keysIn(dead)).toEqual(["poison"]);
      expect(new Set(lines.filter((line) => innocent.includes(line)))).toEqual(new Set(innocent));
      expect(lines).toContain(`${ALONE} order.created:poison`);
    });

    test("takes no other with it where several processes share the queue", async () => {
      const { dead, queue } = await limited(8);
      await publish(queue, [...innocent.slice(0, 3), "poison", ...innocent.slice(3)]);
      await run(queue, dead, 3, { deliveryLimit: 8, deadLetterExchange: true });
      expect(await keysIn(dead)).toEqual(["poison"]);
    });
  });
});
