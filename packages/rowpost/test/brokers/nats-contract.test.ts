/**
 * The NATS broker on a server of its own, with logins, that is killed and frozen: the broker
 * contract, then what it does not ask.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type NatsOptions, nats } from "../../src/brokers/nats/index.ts";
import { type BrokerHarness, createReceivedLog, createTcpProxy, type ReceivedLog } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { type Admin, createAdmin, type PrivateServer, startPrivateServer } from "./nats-server.ts";
import { added, counts, endsByItself, resources, sendsAllAgain } from "./outcomes.ts";

const STREAM = "CONTRACT";
const TOPICS = { main: "orders", other: "billing", ordered: "ledger.lines", unknown: "nowhere" };
/** Leaves room for the headers below the server's 1 MiB. */
const LIMIT = 1_000_000;
const LOGIN = { user: "relay", password: "good news" };
const CONFIG = `authorization { users: [ { user: "${LOGIN.user}", password: "${LOGIN.password}" } ] }`;

describeWithService("nats", "the NATS broker and its faults", () => {
  let server: PrivateServer;
  let admin: Admin;

  beforeAll(async () => {
    server = await startPrivateServer(CONFIG);
    admin = await createAdmin({ servers: server.address, user: LOGIN.user, pass: LOGIN.password });
    await admin.createStream({ name: STREAM, subjects: [TOPICS.main, TOPICS.other, TOPICS.ordered] });
  });

  afterAll(async () => {
    await admin?.close();
    await server?.remove();
  });

  const create = (options: Partial<NatsOptions> = {}): Broker =>
    nats({ servers: server.address, ...LOGIN, ackTimeoutMs: 2000, connectTimeoutMs: 1000, ...options });

  async function harness(): Promise<BrokerHarness> {
    const proxy = await createTcpProxy({ target: { port: server.port } });
    const servers = `127.0.0.1:${proxy.port}`;
    const log = createReceivedLog();
    const read = createStreamReader(admin, log);
    return {
      name: "nats",
      createBroker: () => create({ servers, ackTimeoutMs: 10_000, maxBodyBytes: LIMIT }),
      createUnauthorized: () => create({ servers, password: "bad news" }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: LIMIT },
      topics: TOPICS,
      async consume(request) {
        const endsAt = performance.now() + request.withinMs;
        for (;;) {
          await read();
          const found = await log.consume({ ...request, withinMs: 10 });
          const isEnough = new Set(found.map(({ headers }) => headers["rowpost-key"])).size >= request.count;
          if (isEnough || performance.now() > endsAt) return found;
          await delay(20);
        }
      },
      faults: proxy,
      async restart() {
        const back = admin.reconnected();
        await server.kill();
        await server.start();
        await back;
      },
      close: () => proxy.close(),
    };
  }

  bindBrokerContract("nats", harness);

  test("kill -9 while publishing: nothing acknowledged is lost, nothing is counted while it is away, and all goes again when it is back", async () => {
    const broker = create();
    const acknowledged = new Set<string | undefined>();
    let calls = 0;
    const publish = async (count: number, by = broker): Promise<PublishResult[]> => {
      calls += 1;
      const keys = Array.from({ length: count }, (_, index) => `kill-${calls}-${index}`);
      // Every third message has one of 20 ordering keys, which no other call uses at the same time.
      const keyOf = (index: number): Partial<OutgoingMessage> =>
        index % 3 === 0 ? { orderingKey: `kill-${calls}-${index % 20}` } : {};
      const results = await by.publish(
        keys.map((key, index) => message(key, keyOf(index))),
        noDeadline(),
      );
      const sent = keys.filter((_key, index) => results[index]?.status === "sent");
      for (const key of sent) acknowledged.add(key);
      return results;
    };
    try {
      const first = await lastSequence(admin);
      expect(counts(await publish(500))).toEqual({ sent: 500 });
      const during: PublishResult[] = [];
      const back = admin.reconnected();
      let killed: Promise<void> | undefined;
      for (let round = 1; during.every(({ status }) => status === "sent"); round += 1) {
        const both = Promise.all([publish(1500), publish(1500)]);
        // In the middle of the third round, with receipts under way.
        if (round === 3) killed = server.kill();
        during.push(...(await both).flat());
      }
      await killed;
      expect(counts(during)["unknown"]).toBeGreaterThan(0);
      // What was on its way is unknown, what was not is certainly not handed over; no message is to
      // blame.
      for (const result of during) {
        if (result.status === "failed") expect(["unknown", "connection"]).toContain(result.scope);
      }
      // Certainly away now: nothing is handed over, and the refusal ends a call, no timeout.
      const away = (await publish(300)).filter((result) => result.status === "failed");
      expect(new Set(away.map(({ scope, code }) => `${scope} ${code}`))).toEqual(new Set(["connection ECONNREFUSED"]));
      await expect(broker.check()).rejects.toThrow(/ECONNREFUSED/);

      // A server that is there before its streams are says "no responders": that must not be
      // counted as an attempt.
      const starting: PublishResult[] = [];
      let isReady = false;
      const started = server.start().then(() => {
        isReady = true;
      });
      while (!isReady) {
        starting.push(...(await publish(20)));
        await delay(20);
      }
      await started;
      expect(counts(starting)["message"]).toBeUndefined();
      await sendsAllAgain((by) => publish(500, by), broker, create);
      await back;
      const stored = new Set((await admin.stored(STREAM, first + 1)).map(({ headers }) => headers["rowpost-key"]));
      expect([...acknowledged].filter((key) => !stored.has(key))).toEqual([]);
      expect(acknowledged.size).toBeGreaterThan(5000);
    } finally {
      await broker.close();
    }
  }, 60_000);

  test("a frozen server: unknown after the receipt's time, then certainly not handed over; all goes again once it thaws", async () => {
    const broker = create({ ackTimeoutMs: 1000 });
    try {
      await sends(broker);
      await server.freeze();
      const batch = Array.from({ length: 200 }, (_, index) => message(`frozen-${index}`));
      for (const result of await broker.publish(batch, noDeadline())) {
        expect(result).toMatchObject({ scope: "unknown", code: "ACK_TIMEOUT" });
      }
      // The old connection is given up after a ping, and no new one comes about.
      const second = await endsByItself("publish", broker.publish([message("frozen-later")], noDeadline()));
      expect(second).toMatchObject([{ status: "failed", scope: "connection", code: "CONNECT_TIMEOUT" }]);
      server.thaw();
      await sends(broker);
      // A retry of what is unknown: JetStream knows the copies.
      const again = await broker.publish(batch, noDeadline());
      expect(counts(again)).toEqual({ sent: 200 });
      const stored = await admin.stored(STREAM);
      expect(stored.filter(({ headers }) => headers["rowpost-key"]?.startsWith("frozen-1") === true)).toHaveLength(111);
    } finally {
      server.thaw();
      await broker.close();
    }
  }, 60_000);

  test("an abort settles a call to a frozen server, and what waited for its turn was not started", async () => {
    const broker = create({ ackTimeoutMs: 60_000, maxInFlight: 20 });
    try {
      await sends(broker);
      await server.freeze();
      const batch = Array.from({ length: 100 }, (_, index) => message(`aborted-${index}`));
      const deadline = { signal: AbortSignal.timeout(500) };
      // One call fills the window; another waits behind it, and is aborted by the same signal.
      const calls = [batch, [message("aborted-behind")]].map((each) => broker.publish(each, deadline));
      const outcomes = (await endsByItself("publish", Promise.all(calls))).map(counts);
      expect(outcomes).toEqual([{ unknown: 20, notStarted: 80 }, { notStarted: 1 }]);
      server.thaw();
      // The places of the aborted call were given back.
      await sends(broker);
      const stored = (await admin.stored(STREAM)).map(({ headers }) => headers["rowpost-key"]);
      // What room is given back for may not go out any more.
      expect(stored.filter((key) => key?.startsWith("aborted-"))).toEqual(batch.slice(0, 20).map(({ key }) => key));
    } finally {
      server.thaw();
      await broker.close();
    }
  }, 60_000);

  test("close waits for no answer of a frozen server, nor for a connection to one, and leaves nothing that keeps the process alive", async () => {
    const before = resources();
    const [used, unused] = [create({ ackTimeoutMs: 60_000 }), create({ connectTimeoutMs: 60_000 })];
    await sends(used);
    try {
      await server.freeze();
      const publishing = used.publish([message("closed", { body: "x".repeat(900_000) })], noDeadline());
      const connecting = unused.publish([message("closed")], noDeadline());
      await delay(50);
      await endsByItself("close", Promise.all([used.close(), unused.close()]));
      expect(await publishing).toMatchObject([{ status: "failed", scope: "unknown" }]);
      expect(await connecting).toMatchObject([{ status: "notStarted" }]);
      await expect.poll(() => added(before, resources()), { timeout: 30_000 }).toEqual([]);
    } finally {
      server.thaw();
    }
  }, 60_000);

  describe("servers", () => {
    test("the next one is used when one does not answer, within the same call", async () => {
      const broker = create({ servers: ["127.0.0.1:1", server.address] });
      const results = await broker.publish([message("e-1")], noDeadline());
      await broker.close();
      expect(results).toMatchObject([{ status: "sent" }]);
    });

    test("and when one goes away; then the first again", async () => {
      const proxies = await Promise.all([0, 1].map(() => createTcpProxy({ target: { port: server.port } })));
      const broker = create({ servers: proxies.map(({ port }) => `nats://127.0.0.1:${port}`).join(",") });
      try {
        for (const away of proxies) {
          await sends(broker);
          await Promise.all([away.refuse(), away.cut()]);
          await sends(broker);
          expect(proxies.map((proxy) => proxy.connectionCount())).toEqual(
            proxies.map((proxy) => (proxy === away ? 0 : 1)),
          );
          await away.accept();
        }
      } finally {
        await broker.close();
        for (const proxy of proxies) await proxy.close();
      }
    }, 60_000);
  });

  test("a wrong password concerns everything: no message is to blame, and the advice names the variables", async () => {
    const broker = create({ password: "bad news" });
    try {
      await expect(broker.check()).rejects.toMatchObject({
        code: "UNAUTHORIZED",
        message: expect.stringContaining("ROWPOST_NATS_PASSWORD"),
      });
      await expect(broker.check()).rejects.not.toThrow(/bad news/);
      const results = await broker.publish([message("u-1"), message("u-2", { orderingKey: "u" })], noDeadline());
      for (const result of results) {
        expect(result).toMatchObject({ status: "failed", scope: "connection", code: "UNAUTHORIZED" });
      }
    } finally {
      await broker.close();
    }
  });
});

function message(key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return outgoing(key, { topic: TOPICS.main, ...changes });
}

async function lastSequence(admin: Admin): Promise<number> {
  return (await admin.stored(STREAM)).at(-1)?.sequence ?? 0;
}

async function sends(broker: Broker): Promise<void> {
  let probes = 0;
  const probe = async (): Promise<string | undefined> => {
    probes += 1;
    return (await broker.publish([message(`probe-${process.hrtime.bigint()}-${probes}`)], noDeadline()))[0]?.status;
  };
  await expect.poll(probe, { timeout: 30_000, interval: 50 }).toBe("sent");
}

/** Reads what has come into the stream since the last time. */
function createStreamReader(admin: Admin, log: ReceivedLog): () => Promise<void> {
  let next = 1;
  return async () => {
    for (const { sequence, subject, body, headers, rawHeaders } of await admin.stored(STREAM, next)) {
      next = sequence + 1;
      log.add(subject, {
        body,
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
        contentType: headers["content-type"] ?? "application/json",
        dedupeId: rawHeaders.get("Nats-Msg-Id"),
        receivedAtMs: Date.now(),
      });
    }
  };
}
