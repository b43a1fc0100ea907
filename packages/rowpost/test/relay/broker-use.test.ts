/**
 * What a newcomer's program meets: it ends by itself after the documented shutdown, on each broker;
 * `start` rejects for what no waiting mends, and waits for a broker that is away.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect as connectAmqp } from "amqplib";
import { describe, expect, it } from "vitest";
import { createTopics, DRIVERS, deleteTopics } from "../brokers/kafka-server.ts";
import { createAdmin as createNatsAdmin, startPrivateServer } from "../brokers/nats-server.ts";
import { createAdmin as createRedisAdmin, freePort, startPrivateRedis } from "../brokers/redis-server.ts";
import { createTopic, deleteTopic, serverAddress, uniqueName } from "../brokers/rocketmq-server.ts";
import { describeWithService } from "../services.ts";

const PROGRAM = fileURLToPath(new URL("broker-use.process.mjs", import.meta.url));
/** Far beyond what it takes: the test is about ending, not about how soon. */
const ENDS_WITHIN_MS = 30_000;

interface Given {
  readonly entry: string;
  readonly factory: string;
  readonly options: readonly unknown[];
  readonly topic: string;
  readonly resolveFrom?: string;
}

interface Ended {
  readonly said: unknown;
  readonly stderr: string;
}

/** Rejects when the program does not end by itself, or not with 0. */
async function runProgram(given: Given): Promise<Ended> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify(given)], {
    timeout: ENDS_WITHIN_MS,
    killSignal: "SIGKILL",
  });
  return { said: JSON.parse(stdout), stderr };
}

const SENT = { outcome: "sent" };

describeWithService("redis", "a program ends by itself", ({ address }) => {
  it("after relay.stop", async () => {
    const topic = uniqueName("exit");
    const given = { entry: "rowpost/redis", factory: "redis", options: [{ url: address }], topic };
    const { said, stderr } = await runProgram(given);
    expect([said, stderr]).toEqual([SENT, ""]);
    const admin = createRedisAdmin(Number(new URL(address).port || 6379));
    await admin.del(topic);
    admin.disconnect();
  });

  it("start rejects for a wrong password, and nothing keeps the process", async () => {
    const server = await startPrivateRedis(["--requirepass", "secret"]);
    try {
      const url = `redis://:wrong@127.0.0.1:${server.port}`;
      const { said } = await runProgram({ entry: "rowpost/redis", factory: "redis", options: [{ url }], topic: "t" });
      expect(said).toMatchObject({ code: "WRONGPASS", retriable: false });
    } finally {
      await server.remove();
    }
  });
});

describeWithService("rabbitmq", "a program ends by itself", ({ address }) => {
  it("after relay.stop", async () => {
    const topic = uniqueName("exit");
    const connection = await connectAmqp(address);
    const channel = await connection.createChannel();
    await channel.assertQueue(topic, { durable: true });
    try {
      const options = [{ url: address }];
      const { said, stderr } = await runProgram({ entry: "rowpost/rabbitmq", factory: "rabbitmq", options, topic });
      expect([said, stderr]).toEqual([SENT, ""]);
    } finally {
      await channel.deleteQueue(topic);
      await connection.close();
    }
  });

  it("start rejects for a wrong password", async () => {
    const url = new URL(address);
    url.username = "nobody";
    const options = [{ url: url.href }];
    const { said } = await runProgram({ entry: "rowpost/rabbitmq", factory: "rabbitmq", options, topic: "t" });
    expect(said).toMatchObject({ code: "ACCESS_REFUSED", retriable: false });
  });
});

describeWithService("nats", "a program ends by itself", ({ address }) => {
  it("after relay.stop", async () => {
    const topic = uniqueName("exit");
    const servers = new URL(address).host;
    const admin = await createNatsAdmin({ servers });
    await admin.createStream({ name: topic, subjects: [topic] });
    try {
      const { said, stderr } = await runProgram({
        entry: "rowpost/nats",
        factory: "nats",
        options: [{ servers }],
        topic,
      });
      expect([said, stderr]).toEqual([SENT, ""]);
    } finally {
      await admin.deleteStream(topic);
      await admin.close();
    }
  });

  it("start rejects for a wrong password", async () => {
    const server = await startPrivateServer("authorization { user: me, password: secret }");
    try {
      const options = [{ servers: server.address, user: "me", password: "wrong" }];
      const { said } = await runProgram({ entry: "rowpost/nats", factory: "nats", options, topic: "t" });
      expect(said).toMatchObject({ code: "UNAUTHORIZED", retriable: false });
    } finally {
      await server.remove();
    }
  });
});

describeWithService("kafka", "a program ends by itself", ({ address }) => {
  it.each(DRIVERS)("after relay.stop, through %s", async (driver) => {
    const topic = uniqueName("exit");
    const brokers = new URL(address).host;
    await createTopics(brokers, [{ topic, numPartitions: 1 }]);
    try {
      const options = [{ brokers, driver }];
      const { said, stderr } = await runProgram({ entry: "rowpost/kafka", factory: "kafka", options, topic });
      expect([said, stderr]).toEqual([SENT, ""]);
    } finally {
      await deleteTopics(brokers, [topic]);
    }
  });
});

describeWithService("rocketmq", "a program ends by itself", ({ address }) => {
  it("after relay.stop", async () => {
    const topic = uniqueName("exit");
    const server = serverAddress(address);
    await createTopic(server, topic, "NORMAL");
    try {
      const options = [{ endpoints: `127.0.0.1:${server.port}` }];
      const { said, stderr } = await runProgram({ entry: "rowpost/rocketmq", factory: "rocketmq", options, topic });
      expect([said, stderr]).toEqual([SENT, ""]);
    } finally {
      await deleteTopic(server, topic);
    }
  });
});

describe("a program whose broker", () => {
  it("is away starts, is told so on standard error, and ends by itself", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const { said, stderr } = await runProgram({
      entry: "rowpost/redis",
      factory: "redis",
      options: [{ url }],
      topic: "t",
    });
    expect(said).toEqual({ outcome: "away" });
    expect(stderr).toMatch(
      /^rowpost ERROR the broker cannot be used yet; messages wait until it can \{.*ECONNREFUSED/m,
    );
    expect(stderr).toMatch(/^rowpost ERROR the broker cannot be reached; waiting for it \{/m);
  });

  it.each([
    ["rowpost/rocketmq", "rocketmq", [{ endpoints: "127.0.0.1:8081" }], "@grpc/grpc-js"],
    ["rowpost/kafka", "kafka", [{ brokers: "127.0.0.1:9092" }], "kafkajs"],
    ["rowpost/rabbitmq", "rabbitmq", [{ url: "amqp://127.0.0.1" }], "amqplib"],
    ["rowpost/redis", "redis", [{ url: "redis://127.0.0.1" }], "ioredis"],
    ["rowpost/nats", "nats", [{ servers: "127.0.0.1" }], "@nats-io/transport-node"],
    ["rowpost/sqs", "sqs", [{ region: "eu-central-1" }], "@aws-sdk/client-sqs"],
    ["rowpost/mqtt", "mqtt", [{ servers: "127.0.0.1" }], "mqtt"],
  ])("%s has no client installed is told what to install by start", async (entry, factory, options, peer) => {
    // A copy, because Node looks for packages from where a link points to.
    const folder = await mkdtemp(join(tmpdir(), "rowpost-test-peers-"));
    try {
      const root = fileURLToPath(new URL("../../", import.meta.url));
      await mkdir(join(folder, "node_modules/@photostructure"), { recursive: true });
      for (const name of ["package.json", "dist", "proto"]) {
        await cp(join(root, name), join(folder, "node_modules/rowpost", name), { recursive: true });
      }
      const sqlite = fileURLToPath(new URL("..", import.meta.resolve("@photostructure/sqlite")));
      await symlink(sqlite, join(folder, "node_modules/@photostructure/sqlite"));
      const { said } = await runProgram({ entry, factory, options, topic: "t", resolveFrom: folder });
      expect(said).toMatchObject({ code: "MISSING_PEER", retriable: false, message: expect.stringContaining(peer) });
      expect(said).toMatchObject({ message: expect.stringContaining("npm install") });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
