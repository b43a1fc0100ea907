/**
 * The Redis broker behind a cluster and behind sentinels, through clients as users have them; a
 * slot that moves, a primary that dies.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Cluster, Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { decodeRedisEntry, redis } from "../../src/brokers/redis/index.ts";
import { until } from "../../src/testing/contract-run.ts";
import { describeWithService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { createAdmin, freePort, type PrivateRedis, startPrivateRedis, uniqueName } from "./redis-server.ts";

/** Of the operating system, not of a package. */
const PROGRAM = "redis-server";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const within = (ms: number): { readonly signal: AbortSignal } => ({ signal: AbortSignal.timeout(ms) });
const statuses = (results: readonly PublishResult[]): string[] =>
  results.map((result) => (result.status === "failed" ? `${result.scope} ${result.code}` : result.status));

/** Publishes what is not sent yet again and again, as a relay would. */
async function publishUntilSent(broker: Broker, batch: readonly OutgoingMessage[]): Promise<void> {
  let left = batch;
  await expect
    .poll(
      async () => {
        const results = await broker.publish(left, within(2_000));
        left = left.filter((_, index) => results[index]?.status !== "sent");
        return left.length;
      },
      { timeout: 30_000, interval: 100 },
    )
    .toBe(0);
}

async function keysIn(admin: Redis, stream: string): Promise<(string | undefined)[]> {
  const entries = await admin.xrange(stream, "-", "+");
  return entries.map(([, fields]) => decodeRedisEntry(fields).headers["rowpost-key"]);
}

describeWithService("redis", "the Redis broker in a cluster", () => {
  let nodes: PrivateRedis[] = [];
  let admins: Redis[] = [];
  let client: Cluster;

  beforeAll(async () => {
    const words = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    nodes = await Promise.all([startPrivateRedis(words), startPrivateRedis(words)]);
    admins = nodes.map(({ port }) => createAdmin(port));
    const [one, two] = admins as [Redis, Redis];
    await one.cluster("ADDSLOTSRANGE", 0, 8_191);
    await two.cluster("ADDSLOTSRANGE", 8_192, 16_383);
    await one.cluster("MEET", "127.0.0.1", nodes[1]?.port ?? 0);
    for (const admin of admins) {
      const isOk = async () => String(await admin.cluster("INFO")).includes("cluster_state:ok");
      await until("the cluster is formed", isOk, { withinMs: 20_000 });
    }
    client = new Cluster([{ host: "127.0.0.1", port: nodes[0]?.port ?? 0 }], { lazyConnect: true });
  }, 60_000);

  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await Promise.all(nodes.map((node) => node.remove()));
  });

  function create(): Broker {
    const broker = redis({ client });
    closers.push(() => broker.close());
    return broker;
  }

  async function nodeOf(topic: string): Promise<number> {
    return Number(await admins[0]?.cluster("KEYSLOT", topic)) < 8_192 ? 0 : 1;
  }

  /** Four topics of one node: names chosen blindly may all belong to the other. */
  async function topicsOn(node: number): Promise<string[]> {
    const topics: string[] = [];
    while (topics.length < 4) {
      const topic = uniqueName("t");
      if ((await nodeOf(topic)) === node) topics.push(topic);
    }
    return topics;
  }

  test("each topic goes to the node of its slot, transactions too, and the user's client is not connected", async () => {
    const broker = create();
    await broker.check();
    const topics = [...(await topicsOn(0)), ...(await topicsOn(1))];
    const batch = topics.flatMap((topic) =>
      ["1", "2", "3"].map((key) => outgoing(key, { topic, orderingKey: key === "1" ? undefined : "k" })),
    );
    expect(new Set(statuses(await broker.publish(batch, noDeadline())))).toEqual(new Set(["sent"]));
    for (const topic of topics) {
      const owner = admins[await nodeOf(topic)] as Redis;
      expect(new Set(await keysIn(owner, topic))).toEqual(new Set(["1", "2", "3"]));
    }
    expect(client.status).toBe("wait");
  });

  test("a slot that moved to another node is followed", async () => {
    const broker = create();
    const topic = uniqueName("moved");
    const slot = Number(await admins[0]?.cluster("KEYSLOT", topic));
    const [from, to] = (slot < 8_192 ? admins : [...admins].reverse()) as [Redis, Redis];
    await broker.check();
    const target = String(await to.cluster("MYID"));
    for (const admin of [to, from]) await admin.cluster("SETSLOT", slot, "NODE", target);
    const batch = [
      outgoing("1", { topic }),
      outgoing("2", { topic, orderingKey: "k" }),
      outgoing("3", { topic, orderingKey: "k" }),
    ];
    await publishUntilSent(broker, batch);
    expect(new Set(await keysIn(to, topic))).toEqual(new Set(["1", "2", "3"]));
  });

  test("a node that dies: its topics wait, nothing is lost, and all goes out when it is back", async () => {
    const broker = create();
    const topics = [...(await topicsOn(0)), ...(await topicsOn(1))];
    const batch = topics.map((topic, index) => outgoing(String(index), { topic }));
    await publishUntilSent(broker, batch);
    await nodes[1]?.kill();
    const results = await broker.publish(batch, within(3_000));
    expect(statuses(results).some((status) => status !== "sent")).toBe(true);
    await nodes[1]?.start();
    await publishUntilSent(
      broker,
      batch.filter((_, index) => results[index]?.status !== "sent"),
    );
    for (const [index, topic] of topics.entries()) {
      expect(await keysIn(admins[await nodeOf(topic)] as Redis, topic)).toContain(String(index));
    }
  }, 60_000);
});

describeWithService("redis", "the Redis broker behind sentinels", () => {
  test("a primary that dies is replaced, and with minReplicas no message that was sent is lost", async () => {
    const primary = await startPrivateRedis(["--repl-diskless-sync-delay", "0"]);
    closers.push(() => primary.remove());
    const replica = await startPrivateRedis(["--replicaof", "127.0.0.1", String(primary.port)]);
    closers.push(() => replica.remove());
    const sentinel = await startSentinel(primary.port);
    closers.push(() => sentinel.remove());
    const client = new Redis({
      sentinels: [{ host: "127.0.0.1", port: sentinel.port }],
      name: "shop",
      lazyConnect: true,
    });
    const broker = redis({ client, minReplicas: 1, replicaTimeoutMs: 500 });
    closers.push(() => broker.close());
    const topic = uniqueName("failover");
    const before = Array.from({ length: 50 }, (_, index) =>
      outgoing(`b${index}`, { topic, orderingKey: `k${index % 5}` }),
    );
    await publishUntilSent(broker, before);
    const survivor = createAdmin(replica.port);
    closers.push(() => survivor.disconnect());
    // The sentinel has to know the replica before it can choose it.
    const watcher = createAdmin(sentinel.port);
    closers.push(() => watcher.disconnect());
    await expect.poll(() => watcher.info("sentinel").catch(() => ""), { timeout: 30_000 }).toContain("slaves=1");
    await primary.kill();
    // The new primary has no replica of its own, so that nothing can be proven any more.
    const alone = redis({ client });
    closers.push(() => alone.close());
    const after = Array.from({ length: 50 }, (_, index) =>
      outgoing(`a${index}`, { topic, orderingKey: `k${index % 5}` }),
    );
    await publishUntilSent(alone, after);
    const keys = new Set(await keysIn(survivor, topic));
    for (const { key } of [...before, ...after]) expect(keys).toContain(key);
    expect(statuses(await broker.publish([outgoing("x", { topic })], within(3_000)))).toEqual([
      "destination NOT_REPLICATED",
    ]);
  }, 90_000);
});

/**
 * A sentinel, alone, that gives a primary up after half a second. It keeps its state in its
 * configuration file.
 */
async function startSentinel(primaryPort: number): Promise<{ readonly port: number; remove(): Promise<void> }> {
  const port = await freePort();
  const folder = await mkdtemp(path.join(tmpdir(), "rowpost-test-sentinel-"));
  const config = path.join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor shop 127.0.0.1 ${primaryPort} 1`,
    "sentinel down-after-milliseconds shop 500",
    "sentinel failover-timeout shop 3000",
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  const process = spawn(PROGRAM, [config, "--sentinel"], { stdio: "ignore" });
  const ended = once(process, "exit");
  return {
    port,
    async remove() {
      process.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
