/**
 * The NATS broker on a server of its own, with logins, that is killed and frozen: the broker
 * contract, then what it does not ask.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type NatsOptions, nats } from "../../src/brokers/nats/index.ts";
import { type BrokerHarness, createReceivedLog, createTcpProxy, type ReceivedLog } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { defineFaults } from "./faults.cases.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { type Admin, createAdmin, type PrivateServer, startPrivateServer } from "./nats-server.ts";
import { counts, sendsAllAgain } from "./outcomes.ts";

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

  defineFaults({
    create,
    server: () => server,
    message,
    maxInFlight: 20,
    async afterAbort() {
      const stored = (await admin.stored(STREAM)).map(({ headers }) => headers["rowpost-key"]);
      // What room is given back for may not go out any more.
      const first = Array.from({ length: 20 }, (_, index) => `aborted-${index}`);
      expect(stored.filter((key) => key?.startsWith("aborted-"))).toEqual(first);
    },
  });

  test("a retry of what is unknown stores no copies: JetStream knows their ids", async () => {
    const stored = await admin.stored(STREAM);
    expect(stored.filter(({ headers }) => headers["rowpost-key"]?.startsWith("frozen-"))).toHaveLength(10);
  });

  test("the next server is used when one does not answer, within the same call", async () => {
    const broker = create({ servers: ["127.0.0.1:1", server.address] });
    const results = await broker.publish([message("e-1")], noDeadline());
    await broker.close();
    expect(results).toMatchObject([{ status: "sent" }]);
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
