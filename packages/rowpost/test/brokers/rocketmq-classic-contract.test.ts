/**
 * The classic RocketMQ broker on servers of its own, 4.9 and 5.5, with access control and TLS, that
 * are killed and frozen: the broker contract, then what it does not ask.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { type RocketmqClassicOptions, rocketmqClassic } from "../../src/brokers/rocketmq-classic/index.ts";
import { type BrokerFaults, type BrokerHarness, createTcpProxy, type TcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { counts } from "./outcomes.ts";
import {
  CLASSIC_SERVICES,
  type ClassicServer,
  configureBroker,
  createClassicReader,
  forAdmin,
  optionsFor,
  startClassicServer,
} from "./rocketmq-classic-server.ts";
import { consumeWith, sendsSoon } from "./rocketmq-received.ts";
import { createTopic, type Reader } from "./rocketmq-server.ts";

const TOPICS = { main: "orders", other: "billing", ordered: "ledger", unknown: "nowhere" };

describeWithService(CLASSIC_SERVICES, "the classic RocketMQ broker and its faults", ({ name }) => {
  let server: ClassicServer;
  let reader: Reader;

  beforeAll(async () => {
    server = await startClassicServer(name);
    for (const topic of [TOPICS.main, TOPICS.other, TOPICS.ordered]) await createTopic(forAdmin(server), topic);
    reader = await createClassicReader(server, [TOPICS.main, TOPICS.other, TOPICS.ordered]);
  }, 180_000);

  afterAll(async () => {
    await reader?.close();
    await server?.remove();
  });

  const create = (options: Partial<RocketmqClassicOptions> = {}): Broker =>
    rocketmqClassic({ ...optionsFor(server), requestTimeoutMs: 2000, ...options });

  async function harness(): Promise<BrokerHarness> {
    const [names, brokers] = await Promise.all([
      createTcpProxy({ target: { port: server.nameServerPort } }),
      createTcpProxy({ target: { port: server.brokerPort } }),
    ]);
    const through: Partial<RocketmqClassicOptions> = {
      nameServers: `127.0.0.1:${names.port}`,
      brokerAddress: () => `127.0.0.1:${brokers.port}`,
      requestTimeoutMs: 10_000,
    };
    return {
      name: "rocketmq-classic",
      createBroker: () => create(through),
      createUnauthorized: () => create({ ...through, secretKey: "of-bad-news" }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: 4_194_304 },
      topics: TOPICS,
      consume: consumeWith(() => reader),
      faults: both(names, brokers),
      async restart() {
        await server.kill();
        await server.start();
      },
      async close() {
        await Promise.all([names.close(), brokers.close()]);
      },
    };
  }

  bindBrokerContract(`rocketmq-classic on ${name}`, harness);

  describe("name servers", () => {
    test("the next one is asked when one dies, and the first again", async () => {
      const [one, two] = await Promise.all([
        createTcpProxy({ target: { port: server.nameServerPort } }),
        createTcpProxy({ target: { port: server.nameServerPort } }),
      ]);
      const broker = create({ nameServers: `127.0.0.1:${one.port};127.0.0.1:${two.port}` });
      try {
        for (const [away, other] of [
          [one, two],
          [two, one],
        ] as const) {
          await away.refuse();
          await away.cut();
          await broker.check();
          // A route that nobody has asked for yet.
          const [result] = await broker.publish([message("ns", { topic: `absent-${away.port}` })], noDeadline());
          expect(result).toMatchObject({ code: "TOPIC_NOT_EXIST" });
          expect(other.connectionCount()).toBeGreaterThan(0);
          await away.accept();
        }
      } finally {
        await broker.close();
        await Promise.all([one.close(), two.close()]);
      }
    });

    test("while all are dead, what goes to known topics goes on", async () => {
      const proxy = await createTcpProxy({ target: { port: server.nameServerPort } });
      const broker = create({ nameServers: `127.0.0.1:${proxy.port}` });
      try {
        await sends(broker);
        await proxy.refuse();
        await proxy.cut();
        expect(counts(await broker.publish([message("known")], noDeadline()))).toEqual({ sent: 1 });
        expect(await broker.publish([message("new", { topic: TOPICS.other })], noDeadline())).toMatchObject([
          { status: "failed", scope: "destination", code: "ECONNREFUSED" },
        ]);
        await expect(broker.check()).rejects.toMatchObject({ code: "ECONNREFUSED" });
      } finally {
        await broker.close();
        await proxy.close();
      }
    });
  });

  describe("TLS on the same ports", () => {
    test("with the server's certificate, for the name server and the broker", async () => {
      const broker = create({ tls: { ca: readFileSync(server.certificateFile) } });
      const batch = Array.from({ length: 100 }, (_, index) => message(`tls-${index}`));
      const results = await broker.check().then(() => broker.publish(batch, noDeadline()));
      await broker.close();
      expect(counts(results)).toEqual({ sent: 100 });
    });

    test("a certificate that is not trusted is refused, with advice", async () => {
      const broker = create({ tls: true });
      try {
        await expect(broker.check()).rejects.toThrow(/certificate.*tls\.ca/);
        expect(await broker.publish([message("tls-x")], noDeadline())).toMatchObject([
          { status: "failed", scope: "connection", code: "DEPTH_ZERO_SELF_SIGNED_CERT" },
        ]);
      } finally {
        await broker.close();
      }
    });
  });

  test.each([
    ["a wrong secret", { secretKey: "of-bad-news" }],
    ["a key that nobody knows", { accessKey: "nobody" }],
    ["no key", { accessKey: undefined, secretKey: undefined }],
  ])("%s concerns everything, and the advice names the variables, not the secret", async (_, options) => {
    const broker = create(options);
    try {
      const refused = {
        code: "UNAUTHORIZED",
        message: expect.stringMatching(/^[^\n]*ROWPOST_ROCKETMQ_SECRET_KEY[^\n]*$/),
      };
      await expect(broker.check()).rejects.toMatchObject(refused);
      await expect(broker.check()).rejects.toMatchObject({ message: expect.not.stringMatching(/of-(bad|good)-news/) });
      const [result] = await broker.publish([message("u-1")], noDeadline());
      expect(result).toMatchObject({ status: "failed", scope: "connection", code: "UNAUTHORIZED" });
    } finally {
      await broker.close();
    }
  });

  test("a broker that takes no writes: the topic rests, and the failure says how it is changed", async () => {
    const broker = create();
    try {
      await sends(broker);
      await configureBroker(server, { brokerPermission: "4" });
      const other = create();
      const publish = async (): Promise<unknown> => (await other.publish([message("ro")], noDeadline()))[0];
      await expect
        .poll(publish, { timeout: 30_000 })
        .toMatchObject({ status: "failed", scope: "destination", reason: expect.stringContaining("brokerPermission") });
      await other.close();
    } finally {
      await configureBroker(server, { brokerPermission: "6" });
      await sends(broker);
      await broker.close();
    }
  }, 60_000);
});

describeWithService("rocketmq4", "receipts for less than was asked for", () => {
  test("a primary without a replica stores, and does not make a message sent unless that is asked for", async () => {
    const server = await startClassicServer("rocketmq4", ["brokerRole=SYNC_MASTER"]);
    const [strict, lenient] = [
      rocketmqClassic(optionsFor(server)),
      rocketmqClassic({ ...optionsFor(server), weakReceipts: "accept" }),
    ];
    try {
      await createTopic(forAdmin(server), TOPICS.main);
      const batch = [message("w-1"), message("w-2")];
      for (const result of await strict.publish(batch, noDeadline())) {
        expect(result).toMatchObject({ status: "failed", scope: "destination", code: "SLAVE_NOT_AVAILABLE" });
      }
      expect(counts(await lenient.publish(batch, noDeadline()))).toEqual({ sent: 2 });
    } finally {
      await Promise.all([strict.close(), lenient.close()]);
      await server.remove();
    }
  }, 120_000);
});

const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
  outgoing(key, { topic: TOPICS.main, ...changes });

const sends = (broker: Broker): Promise<void> => sendsSoon(broker, message("probe"));

/** The name server and the broker, behind a proxy each, break together. */
function both(names: TcpProxy, brokers: TcpProxy): BrokerFaults {
  const all = [names, brokers];
  const each = async (step: (proxy: TcpProxy) => Promise<void>): Promise<void> => {
    await Promise.all(all.map(step));
  };
  return {
    cut: () => each((proxy) => proxy.cut()),
    mute: (direction) => {
      for (const proxy of all) proxy.mute(direction);
    },
    unmute: () => {
      for (const proxy of all) proxy.unmute();
    },
    refuse: () => each((proxy) => proxy.refuse()),
    accept: () => each((proxy) => proxy.accept()),
    bytesToTarget: () => brokers.bytesToTarget(),
  };
}
