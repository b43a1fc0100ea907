/**
 * The Kafka broker on a server of its own, with logins and TLS, that is killed and frozen: the
 * broker contract, then what it does not ask. With the client that is used by default on this
 * Node.js; `tools/test-matrix.sh` runs the newer ones, and so the other client.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type KafkaOptions, kafka } from "../../src/brokers/kafka/index.ts";
import type { BrokerHarness } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { createReader, createTopics, DRIVERS, type PrivateServer, startPrivateServer } from "./kafka-server.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { added, countsWithCode as counts, endsByItself, resources, sendsAllAgain } from "./outcomes.ts";

const TOPICS = { main: "orders", other: "billing", ordered: "ledger", unknown: "nowhere" };

describeWithService("kafka", "the Kafka broker and its faults", () => {
  const driver = DRIVERS.at(-1);
  let server: PrivateServer;

  beforeAll(async () => {
    server = await startPrivateServer();
    await createTopics(server.address, [
      { topic: TOPICS.main, numPartitions: 3 },
      { topic: TOPICS.other },
      { topic: TOPICS.ordered, numPartitions: 4 },
    ]);
  }, 180_000);

  afterAll(async () => {
    await server?.remove();
  });

  async function harness(): Promise<BrokerHarness> {
    const { account, proxy } = server;
    const options: KafkaOptions = { brokers: `127.0.0.1:${proxy.port}`, driver, sasl: account };
    const reader = await createReader(server.address, [TOPICS.main, TOPICS.other, TOPICS.ordered]);
    return {
      name: `kafka (${driver})`,
      createBroker: () => kafka(options),
      createUnauthorized: () => kafka({ ...options, sasl: { ...account, password: "of-bad-news" } }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined },
      topics: TOPICS,
      consume: reader.consume,
      faults: proxy,
      async restart() {
        await server.kill();
        await server.start();
      },
      refusedBodyBytes: 1_100_000,
      bigBodyBytes: 1_000_000,
      close: () => reader.close(),
    };
  }

  bindBrokerContract(`kafka (${driver})`, harness);

  describe(`with ${driver}`, () => {
    const create = (options: Partial<KafkaOptions> = {}): Broker =>
      kafka({ brokers: server.address, driver, requestTimeoutMs: 2000, ...options });
    const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
      outgoing(`${driver}-${key}`, { topic: TOPICS.main, ...changes });
    const sends = (broker: Broker): Promise<void> =>
      expect
        .poll(async () => counts(await broker.publish([message("probe")], noDeadline())), { timeout: 30_000 })
        .toEqual({ sent: 1 });

    test.each([
      ["TLS", undefined],
      ["TLS and PLAIN", "plain"],
      ["TLS and SCRAM-SHA-256", "scram-sha-256"],
      ["TLS and SCRAM-SHA-512", "scram-sha-512"],
    ] as const)("%s", async (_, mechanism) => {
      const tls = { ca: readFileSync(server.certificateFile) };
      const login =
        mechanism === undefined ? {} : { brokers: server.tlsLoginAddress, sasl: { mechanism, ...server.account } };
      const broker = create({ brokers: server.tlsAddress, tls, ...login });
      try {
        await broker.check();
        const sent = await broker.publish([message("tls-1"), message("tls-2"), message("tls-3")], noDeadline());
        expect(counts(sent)).toEqual({ sent: 3 });
      } finally {
        await broker.close();
      }
    });

    test.each([
      ["a certificate that is not trusted", {}],
      ["a certificate for another name", { serverName: "kafka.example" }],
    ])("%s is refused, with advice", async (_, options) => {
      const ca = "serverName" in options ? { ca: readFileSync(server.certificateFile) } : {};
      const broker = create({ brokers: server.tlsAddress, tls: { ...options, ...ca } });
      try {
        await expect(broker.check()).rejects.toThrow(/certificate.*tls\.ca/i);
        const [result] = await broker.publish([message("tls-x")], noDeadline());
        expect(result).toMatchObject({ scope: "connection", reason: expect.stringMatching(/certificate|altname/i) });
      } finally {
        await broker.close();
      }
    });

    test("plaintext to a listener that speaks TLS ends in time, with advice", async () => {
      const broker = create({ brokers: server.tlsAddress, connectTimeoutMs: 1000 });
      try {
        await expect(broker.check()).rejects.toMatchObject({ message: expect.stringContaining("takes TLS only") });
      } finally {
        await broker.close();
      }
    });

    test("a wrong password concerns everything: no message is to blame, and the advice names the variables", async () => {
      const tls = { ca: readFileSync(server.certificateFile) };
      for (const mechanism of ["plain", "scram-sha-256"] as const) {
        const sasl = { ...server.account, mechanism, password: "of-bad-news" };
        const broker = create({ brokers: server.tlsLoginAddress, tls, sasl });
        try {
          await expect(broker.check()).rejects.toMatchObject({
            code: "UNAUTHORIZED",
            message: expect.stringContaining("ROWPOST_KAFKA_PASSWORD"),
          });
          const results = await broker.publish([message("u-1"), message("u-2")], noDeadline());
          expect(counts(results)).toEqual({ "connection UNAUTHORIZED": 2 });
        } finally {
          await broker.close();
        }
      }
    });

    test("kill -9 in the middle of batches: nothing acknowledged is lost, nothing is counted while it is away, and all goes again when it is back", async () => {
      const broker = create();
      const acknowledged: string[] = [];
      let number = 0;
      const publish = async (count: number, by = broker): Promise<PublishResult[]> => {
        const batch = Array.from({ length: count }, () => {
          number += 1;
          return message(`kill-${number}`, { topic: TOPICS.ordered, orderingKey: `kill-${number % 20}` });
        });
        const results = await by.publish(batch, noDeadline());
        acknowledged.push(...batch.filter((_, index) => results[index]?.status === "sent").map(({ key }) => key));
        return results;
      };
      try {
        await publish(200);
        const killed = server.kill();
        let isDead = false;
        void killed.then(() => {
          isDead = true;
        });
        while (!isDead) {
          const during = (await Promise.all([publish(200), publish(100)])).flat();
          for (const result of during) {
            if (result.status === "failed") expect(["unknown", "connection"]).toContain(result.scope);
          }
        }
        // Certainly away now: nothing is handed over, and what ends a call is the refusal, no
        // timeout.
        await expect(broker.check()).rejects.toThrow(/ECONNREFUSED/);
        const away = counts(await publish(200));
        expect(Object.keys(away).toSorted()).toEqual(["connection ECONNREFUSED", "notStarted"]);

        const starting = { isReady: false };
        const started = server.start().then(() => {
          starting.isReady = true;
        });
        while (!starting.isReady) {
          const results = await publish(20);
          // A broker that does not know its topics or leaders yet: that must not be counted as an
          // attempt.
          for (const result of results)
            if (result.status === "failed") expect(result).not.toMatchObject({ scope: "message" });
          await delay(200);
        }
        await started;
        await sendsAllAgain((by) => publish(100, by), broker, create);
        // The first call and the last one; of those in between a server that dies at once takes
        // none.
        expect(acknowledged.length).toBeGreaterThanOrEqual(300);
        const ledger = await createReader(server.address, [TOPICS.ordered]);
        const records = await ledger.records(TOPICS.ordered, acknowledged.length, `${driver}-kill-`);
        await ledger.close();
        const found = new Set(records.map(({ headers }) => headers["rowpost-key"]));
        expect(acknowledged.filter((key) => !found.has(key))).toEqual([]);
      } finally {
        await broker.close();
      }
    }, 120_000);

    test("a frozen server: unknown after the deadline, then certainly not handed over; all goes again once it thaws", async () => {
      const broker = create({ requestTimeoutMs: 1000, connectTimeoutMs: 1000 });
      try {
        await sends(broker);
        await server.freeze();
        const batch = Array.from({ length: 200 }, (_, index) => message(`frozen-${index}`));
        expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ "unknown REQUEST_TIMEOUT": 200 });
        expect(counts(await broker.publish([message("frozen-later")], noDeadline()))).toEqual({
          "connection CONNECT_TIMEOUT": 1,
        });
        await server.thaw();
        await sends(broker);
      } finally {
        await server.thaw();
        await broker.close();
      }
    }, 60_000);

    test("an abort settles a call to a frozen server, close waits for no answer, and nothing keeps the process alive", async () => {
      const before = resources();
      const broker = create({ requestTimeoutMs: 60_000, connectTimeoutMs: 60_000 });
      await sends(broker);
      try {
        await server.freeze();
        const keyed = [1, 2].map((index) => message(`aborted-${index}`, { orderingKey: "aborted" }));
        const deadline = { signal: AbortSignal.timeout(300) };
        const first = await endsByItself("publish", broker.publish(keyed, deadline));
        expect(counts(first)).toEqual({ "unknown ABORTED": 2 });
        const publishing = broker.publish([message("closed")], noDeadline());
        await endsByItself("close", broker.close());
        expect(counts(await publishing)).toEqual({ notStarted: 1 });
        await expect.poll(() => added(before, resources()), { timeout: 30_000 }).toEqual([]);
      } finally {
        await server.thaw();
      }
    }, 60_000);
  });
});
