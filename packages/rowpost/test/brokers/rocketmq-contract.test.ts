/**
 * The RocketMQ broker on a server of its own, with access control and TLS, that is killed and
 * frozen: the broker contract, then what it does not ask.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type RocketmqOptions, rocketmq } from "../../src/brokers/rocketmq/index.ts";
import { type BrokerHarness, createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { added, counts, endsByItself, resources, sendsAllAgain } from "./outcomes.ts";
import { consumeWith, keyOf, sendsSoon } from "./rocketmq-received.ts";
import type { ConsumedMessage, PrivateServer, Reader } from "./rocketmq-server.ts";
import { createReader, createTopic, startPrivateServer } from "./rocketmq-server.ts";

const TOPICS = { main: "orders", other: "billing", ordered: "ledger", unknown: "nowhere" };

describeWithService("rocketmq", "the RocketMQ broker and its faults", () => {
  let server: PrivateServer;
  let reader: Reader;

  beforeAll(async () => {
    server = await startPrivateServer();
    await createTopic(server, TOPICS.main);
    await createTopic(server, TOPICS.other);
    await createTopic(server, TOPICS.ordered, "FIFO");
    reader = await createReader(server, [TOPICS.main, TOPICS.other, TOPICS.ordered]);
  }, 180_000);

  afterAll(async () => {
    await reader?.close();
    await server?.remove();
  });

  const create = (options: Partial<RocketmqOptions> = {}): Broker =>
    rocketmq({
      endpoints: server.endpoint,
      ...server.keys,
      requestTimeoutMs: 2000,
      onWarning: () => undefined,
      ...options,
    });

  async function harness(): Promise<BrokerHarness> {
    const proxy = await createTcpProxy({ target: { port: server.port } });
    const endpoints = `127.0.0.1:${proxy.port}`;
    return {
      name: "rocketmq",
      createBroker: () => create({ endpoints, requestTimeoutMs: 10_000 }),
      createUnauthorized: () => create({ endpoints, secretKey: "of-bad-news" }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: 4_194_304 },
      topics: TOPICS,
      consume: consumeWith(() => reader),
      faults: proxy,
      async restart() {
        await server.kill();
        await server.start();
      },
      close: () => proxy.close(),
    };
  }

  bindBrokerContract("rocketmq", harness);

  describe("endpoints", () => {
    test("the next one is used when one does not answer, within the same call", async () => {
      const broker = create({ endpoints: ["127.0.0.1:1", server.endpoint] });
      try {
        await broker.check();
        expect(await broker.publish([message("e-1")], noDeadline())).toMatchObject([{ status: "sent" }]);
      } finally {
        await broker.close();
      }
    });

    test("and when one goes away; then the first again", async () => {
      const [one, two] = await Promise.all([
        createTcpProxy({ target: { port: server.port } }),
        createTcpProxy({ target: { port: server.port } }),
      ]);
      const broker = create({ endpoints: `127.0.0.1:${one.port},127.0.0.1:${two.port}` });
      try {
        for (const [away, other] of [
          [one, two],
          [two, one],
        ] as const) {
          await sends(broker);
          await away.refuse();
          await away.cut();
          await sends(broker);
          expect(other.connectionCount()).toBeGreaterThan(0);
          await away.accept();
        }
      } finally {
        await broker.close();
        await Promise.all([one.close(), two.close()]);
      }
    }, 60_000);
  });

  describe("TLS on the same port", () => {
    test("with the server's certificate", async () => {
      const broker = create({ tls: { ca: readFileSync(server.certificateFile) } });
      try {
        await broker.check();
        const batch = Array.from({ length: 100 }, (_, index) => message(`tls-${index}`));
        expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: 100 });
      } finally {
        await broker.close();
      }
    });

    test.each([
      ["a certificate that is not trusted", { tls: true }, /certificate/],
      ["a certificate for another name", { tls: { serverName: "mq.example" } }, /mq\.example|certificate/i],
    ])("%s is refused, with advice", async (_, options, reason) => {
      const ca = options.tls === true ? undefined : readFileSync(server.certificateFile);
      const broker = create({ tls: typeof options.tls === "object" ? { ...options.tls, ca } : options.tls });
      try {
        await expect(broker.check()).rejects.toMatchObject({
          name: "BrokerError",
          message: expect.stringMatching(/tls\.ca/),
        });
        const [result] = await broker.publish([message("tls-x")], noDeadline());
        expect(result).toMatchObject({ status: "failed", scope: "connection", reason: expect.stringMatching(reason) });
      } finally {
        await broker.close();
      }
    });

    test("any certificate, where that was asked for", async () => {
      const broker = create({ tls: { rejectUnauthorized: false } });
      try {
        await broker.check();
      } finally {
        await broker.close();
      }
    });
  });

  test("a wrong secret concerns everything: no message is to blame, and the advice names the variables", async () => {
    const broker = create({ secretKey: "of-bad-news" });
    try {
      await expect(broker.check()).rejects.toMatchObject({
        code: "UNAUTHORIZED",
        message: expect.stringContaining("ROWPOST_ROCKETMQ_SECRET_KEY"),
      });
      const results = await broker.publish([message("u-1"), message("u-2", { topic: TOPICS.ordered })], noDeadline());
      for (const result of results) {
        expect(result).toMatchObject({ status: "failed", scope: "connection", code: "UNAUTHORIZED" });
      }
    } finally {
      await broker.close();
    }
  });

  test("kill -9 while publishing: nothing acknowledged is lost, nothing is counted while it is away, and all goes again when it is back", async () => {
    const broker = create({ requestTimeoutMs: 10_000 });
    const acknowledged = new Map<string, Set<string>>([
      [TOPICS.main, new Set()],
      [TOPICS.ordered, new Set()],
    ]);
    let number = 0;
    const publish = async (topic: string, count: number, by = broker): Promise<PublishResult[]> => {
      const batch = Array.from({ length: count }, () => {
        number += 1;
        const orderingKey = topic === TOPICS.ordered ? `kill-${number % 20}` : undefined;
        return message(`kill-${number}`, { topic, orderingKey });
      });
      const results = await by.publish(batch, noDeadline());
      for (const [index, result] of results.entries()) {
        if (result.status === "sent") acknowledged.get(topic)?.add(batch[index]?.key ?? "");
      }
      return results;
    };
    try {
      await publish(TOPICS.main, 500);
      await publish(TOPICS.ordered, 100);
      const killed = server.kill();
      const during: PublishResult[] = [];
      let isDead = false;
      void killed.then(() => {
        isDead = true;
      });
      while (!isDead) {
        const both = await Promise.all([publish(TOPICS.main, 200), publish(TOPICS.ordered, 100)]);
        during.push(...both.flat());
      }
      for (const result of during) {
        if (result.status === "failed") expect(["unknown", "connection"]).toContain(result.scope);
      }
      // Certainly away now: nothing is handed over, and the refusal ends a call, no timeout.
      const away = (await Promise.all([publish(TOPICS.main, 200), publish(TOPICS.ordered, 100)])).flat();
      expect(counts(away)["connection"]).toBeGreaterThan(0);
      for (const result of away) {
        if (result.status !== "notStarted") expect(result).toMatchObject({ scope: "connection", code: "ECONNREFUSED" });
      }
      await expect(broker.check()).rejects.toThrow(/ECONNREFUSED/);

      const started = server.start();
      let isReady = false;
      void started.then(() => {
        isReady = true;
      });
      while (!isReady) {
        const results = (await Promise.all([publish(TOPICS.main, 200), publish(TOPICS.ordered, 20)])).flat();
        // A proxy that is up before its broker says "no such topic": that must not be counted as an
        // attempt.
        for (const result of results)
          if (result.status === "failed") expect(result).not.toMatchObject({ scope: "message" });
        await delay(200);
      }
      await sendsAllAgain(
        async (by) => (await Promise.all([publish(TOPICS.main, 500, by), publish(TOPICS.ordered, 100, by)])).flat(),
        broker,
        create,
      );
      // A group of its own, which reads from the beginning: one that was reading when the server
      // died waits for what it had not acknowledged.
      const ledger = await createReader(server, [...acknowledged.keys()]);
      try {
        for (const [topic, keys] of acknowledged) {
          const missing = (all: readonly ConsumedMessage[]): string[] => {
            const found = new Set(all.map(keyOf));
            return [...keys].filter((key) => !found.has(key));
          };
          await ledger.waitFor(topic, (all) => missing(all).length === 0, 30_000).catch(() => undefined);
          expect(missing(ledger.messages(topic))).toEqual([]);
          expect(keys.size).toBeGreaterThan(100);
        }
      } finally {
        await ledger.close();
      }
    } finally {
      await broker.close();
    }
  }, 120_000);

  test("a frozen server: unknown after the deadline, then certainly not handed over; all goes again once it thaws", async () => {
    const broker = create({ requestTimeoutMs: 1000 });
    try {
      await sends(broker);
      await server.freeze();
      const batch = Array.from({ length: 200 }, (_, index) => message(`frozen-${index}`));
      const first = await broker.publish(batch, noDeadline());
      for (const result of first) expect(result).toMatchObject({ scope: "unknown", code: "GRPC_DEADLINE_EXCEEDED" });
      const second = await broker.publish([message("frozen-later")], noDeadline());
      expect(second).toMatchObject([{ status: "failed", scope: "connection", code: "CONNECT_TIMEOUT" }]);
      await server.thaw();
      await sends(broker);
    } finally {
      await server.thaw();
      await broker.close();
    }
  }, 60_000);

  test("an abort settles a call to a frozen server, and what waited for its turn was not started", async () => {
    const broker = create({ requestTimeoutMs: 60_000, maxInFlight: 2, batchSize: 10 });
    try {
      await sends(broker);
      await server.freeze();
      const batch = Array.from({ length: 100 }, (_, index) => message(`aborted-${index}`));
      const results = await endsByItself("publish", broker.publish(batch, { signal: AbortSignal.timeout(500) }));
      expect(counts(results)).toEqual({ unknown: 20, notStarted: 80 });
    } finally {
      await server.thaw();
      await broker.close();
    }
  }, 60_000);

  test("close waits for no answer of a frozen server and leaves nothing that keeps the process alive", async () => {
    const before = resources();
    const broker = create({ requestTimeoutMs: 60_000 });
    await sends(broker);
    try {
      await server.freeze();
      const publishing = broker.publish([message("closed")], noDeadline());
      await delay(50);
      await endsByItself("close", broker.close());
      expect(await publishing).toMatchObject([{ status: "failed", scope: "unknown" }]);
      await expect.poll(() => added(before, resources()), { timeout: 30_000 }).toEqual([]);
    } finally {
      await server.thaw();
    }
  }, 60_000);
});

function message(key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return outgoing(key, { topic: TOPICS.main, ...changes });
}

const sends = (broker: Broker): Promise<void> => sendsSoon(broker, message("probe"));
