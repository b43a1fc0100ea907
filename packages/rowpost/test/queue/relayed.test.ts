/** What a relay publishes into a queue: how it looks there, and what may not become of it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type QueueBrokerOptions, queueBroker } from "../../src/brokers/queue/index.ts";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { NewMessage } from "../../src/message/message.ts";
import { monthAfter, QUEUE_EPOCH_MS, queueMonth } from "../../src/message/queue-id.ts";
import { createOutbox, type Outbox } from "../../src/outbox/outbox.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import type { FaultPoint } from "../../src/relay/options.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { until } from "../until.ts";
import { appendedTo } from "./appended.ts";
import { gate } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

describeOnEach("a relay into a queue", (make, { isServer }) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;
  let outbox: Outbox;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 4, port: 8080, producerGroup: "shop" });
    ({ place, database, queue } = opened);
    await migrate(database, { layout: database.defaultLayout });
    outbox = createOutbox({ database });
  });
  afterEach(() => opened.close());

  const enqueue = (...messages: NewMessage[]): Promise<void> =>
    outbox.transaction(async (tx) => {
      for (const message of messages) await outbox.enqueue(tx, message);
    });

  const order = (key: string, orderingKey?: string) => ({
    type: "order.created",
    key,
    topic: "orders",
    body: { key },
    ...(orderingKey === undefined ? {} : { orderingKey }),
  });

  /** Sends until nothing is left that can be sent. */
  async function drain(
    on: Database = database,
    { broker, onFaultPoint }: { broker?: Broker; onFaultPoint?: (point: FaultPoint) => void | Promise<void> } = {},
  ): Promise<void> {
    const relay = createRelay({
      database: on,
      broker: broker ?? queueBroker({ queue }),
      logger: "silent",
      onFaultPoint,
      retry: { baseMs: 1, maxMs: 1 },
      poll: { minMs: 1, maxMs: 10 },
    });
    await relay.drain({ timeoutMs: 40_000 });
  }

  /** All partitions of `orders`, by a transaction that has 40 messages for them. */
  async function holdTopic(): Promise<{ release(): Promise<void> }> {
    const many = Array.from({ length: 40 }, (_, index) => ({ topic: "orders", orderingKey: `${index}`, body: index }));
    const [held, end] = [gate(), gate()];
    const holding = database.transaction(async (tx) => {
      await queue.append(tx, many);
      held.open();
      await end.opened;
    });
    await Promise.race([held.opened, holding]);
    return {
      async release() {
        end.open();
        await holding;
      },
    };
  }

  const rows = () => place.query("SELECT id, message_key, message_id, state FROM local_message ORDER BY id");

  it("carries everything, keeps the order of keys, and writes the queue's ids into the rows", {
    timeout: 60_000,
  }, async () => {
    await enqueue(
      ...Array.from({ length: 30 }, (_, index) => order(String(index), `customer ${index % 5}`)),
      { ...order("text"), body: "plain", contentType: "text/plain", headers: { traceparent: "00-1-2-01" } },
      { ...order("bytes"), body: Uint8Array.from([0, 255, 7]) },
      { ...order("later"), delayMs: 1 },
    );
    await drain();
    const appended = await appendedTo(place, "orders");
    expect(appended).toHaveLength(33);
    const idOf = new Map(appended.map(({ key, id }) => [key, id]));
    for (const row of await rows()) {
      expect([Number(row["state"]), String(row["message_id"])]).toEqual([2, idOf.get(String(row["message_key"]))]);
    }
    for (let customer = 0; customer < 5; customer += 1) {
      const own = appended.filter(({ orderingKey }) => orderingKey === `customer ${customer}`);
      expect(own.map(({ key }) => Number(key))).toEqual([0, 5, 10, 15, 20, 25].map((step) => step + customer));
      expect(new Set(own.map(({ partition }) => partition)).size).toBe(1);
    }
    const text = appended.find(({ key }) => key === "text");
    expect(text).toMatchObject({ type: "order.created", body: "plain", contentType: "text/plain" });
    expect(text).toMatchObject({ ip: "10.0.0.7", port: 8080, producerGroup: "shop" });
    expect(text?.headers).toMatchObject({ traceparent: "00-1-2-01", "rowpost-id": "order.created:text" });
    expect(appended.find(({ key }) => key === "bytes")).toMatchObject({
      body: "AP8H",
      contentType: "application/octet-stream;base64",
    });
    // In one database the transaction is enough.
    expect(await place.query("SELECT source_id FROM message_source")).toEqual([]);
  });

  it("neither appends a message that changed meanwhile, nor what is behind it in its key", {
    timeout: 60_000,
  }, async () => {
    await enqueue(order("1", "a"), order("2", "a"), order("3", "b"), order("4"));
    let done = false;
    await drain(database, {
      async onFaultPoint(point) {
        if (point !== "beforePublish" || done) return;
        done = true;
        await place.query(
          "UPDATE local_message SET state = 5, lock_version = lock_version + 1 WHERE message_key = '1'",
        );
      },
    });
    const keys = (await appendedTo(place, "orders")).map(({ key }) => key);
    expect(keys.toSorted(byText)).toEqual(["3", "4"]);
    expect((await rows()).map(({ state }) => Number(state))).toEqual([5, 0, 2, 2]);
  });

  // SQLite has one writer: the holder holds everything.
  if (isServer) {
    it("goes on with other topics while a transaction of the user's holds one, and blames no message", async () => {
      await queue.createTopic({ topic: "others", partitions: 1 });
      const keyed = Array.from({ length: 4 }, (_, index) => ({ ...order(`held ${index}`), orderingKey: `k${index}` }));
      const held = await holdTopic();
      // Appends of a message within one publish call, the most: who waits again holds others up.
      const tries = new Map<string, number>();
      let mostTries = 0;
      const relayed: Queue["relayed"] = {
        ...queue.relayed,
        appendWithin(messages, transact) {
          for (const { id } of messages) {
            tries.set(id, (tries.get(id) ?? 0) + 1);
            mostTries = Math.max(mostTries, tries.get(id) ?? 0);
          }
          return queue.relayed.appendWithin(messages, transact);
        },
      };
      const inner = queueBroker({ queue: { ...queue, relayed } });
      const broker: Broker = {
        ...inner,
        publish(batch, options) {
          for (const { id } of batch) tries.delete(id);
          return inner.publish(batch, options);
        },
      };
      const relay = createRelay({
        database,
        broker,
        logger: "silent",
        retry: { maxAttempts: 1 },
        publishTimeoutMs: 60_000,
      });
      await relay.start();
      for (let round = 0; round < 3; round += 1) {
        await enqueue(...keyed.map((each) => ({ ...each, key: `${each.key} ${round}` })));
        await enqueue({ ...order(`free ${round}`), topic: "others" });
        await until(async () => (await appendedTo(place, "others")).length === round + 1);
      }
      await until(() => relay.counts.returned > 0);
      expect(mostTries).toBe(1);
      await held.release();
      await until(async () => (await appendedTo(place, "orders")).length === 40 + 12);
      expect(relay.counts).toMatchObject({ retried: 0, failed: 0 });
      await relay.stop();
    });
  }

  it("appends nothing when the lease was lost: who has it now does", { timeout: 60_000 }, async () => {
    await enqueue(...Array.from({ length: 20 }, (_, index) => order(String(index))));
    const reached: FaultPoint[] = [];
    await drain(database, {
      async onFaultPoint(point) {
        reached.push(point);
        if (point !== "beforePublish" || reached.filter((each) => each === point).length > 1) return;
        await place.query("UPDATE local_message_shard SET owner = NULL, epoch = epoch + 1");
      },
    });
    // It went as far as it could before its database said no.
    expect(reached).toContain("appended");
    const appended = await appendedTo(place, "orders");
    const sent = (await rows()).filter(({ state }) => Number(state) === 2);
    expect(sent.map((row) => String(row["message_id"])).toSorted(byText)).toEqual(
      appended.map(({ id }) => id).toSorted(byText),
    );
  });

  describe("across databases, or from another program", () => {
    const message = (key: string, attempt = 1): OutgoingMessage => ({
      id: `1${key}`,
      type: "order.created",
      key,
      topic: "orders",
      body: "{}",
      contentType: "application/json",
      headers: {},
      orderingKey: undefined,
      attempt,
    });
    const publish = (messages: readonly OutgoingMessage[], options: Partial<QueueBrokerOptions> = {}) =>
      queueBroker({ queue, ...options }).publish(messages, { signal: AbortSignal.timeout(60_000) });
    const ids = (results: readonly PublishResult[]) =>
      results.map((result) => (result.status === "sent" ? result.messageId : JSON.stringify(result)));

    it("appends once what comes again, also in the next month, and a resend once more", async () => {
      const first = ids(await publish([message("1"), message("2")]));
      const again = ids(await publish([message("2", 2), message("3"), message("1", 2)]));
      expect([again[2], again[0]]).toEqual(first);
      const month = queueMonth(first[0] as string);
      const next = startOf(monthAfter(month));
      await place.query(`UPDATE message_topic_partition SET last_id = ${next}`);
      const later = ids(await publish([message("1", 3), message("4"), message("3", 2)]));
      expect([later[0], later[2]]).toEqual([first[0], again[1]]);
      const resent = ids(await publish([{ ...message("1", 4), resend: true }]));
      const rows = await appendedTo(place, "orders");
      expect(rows.map(({ key }) => key).toSorted(byText)).toEqual(["1", "1", "2", "3", "4"]);
      expect(
        rows
          .filter((row) => row.month === monthAfter(month))
          .map(({ id }) => id)
          .toSorted(byText),
      ).toEqual([later[1], resent[0]].toSorted(byText));
    });

    it("appends once what several append at once", async () => {
      const batch = Array.from({ length: 20 }, (_, index) => message(String(index)));
      const reversed = batch.toReversed();
      const answers = await Promise.all([batch, reversed, batch, reversed].map((each) => publishUntilSent(each)));
      const rows = await appendedTo(place, "orders");
      expect(rows).toHaveLength(20);
      expect(answers[1]?.toReversed()).toEqual(answers[0]);
      expect([answers[2], answers[3]?.toReversed()]).toEqual([answers[0], answers[0]]);
    });

    /** Each with a queue, and so a connection, of its own. */
    async function publishUntilSent(batch: readonly OutgoingMessage[]): Promise<string[]> {
      const own = createQueue({ database: place.open(), producerGroup: "shop" });
      try {
        for (;;) {
          const results = await publish(batch, { queue: own });
          if (results.every(({ status }) => status === "sent")) return ids(results);
        }
      } finally {
        await own.close();
      }
    }

    // SQLite has one writer: its wait is that for the file.
    if (isServer) {
      it("waits once for a topic that somebody holds: others wait behind it", async () => {
        let appends = 0;
        const append: Queue["relayed"]["append"] = (messages) => {
          appends += 1;
          return queue.relayed.append(messages);
        };
        const held = await holdTopic();
        const [failure] = await publish([message("1")], { queue: { ...queue, relayed: { ...queue.relayed, append } } });
        await held.release();
        expect(failure).toMatchObject({ status: "failed", scope: "destination", code: "DATABASE_CONFLICT" });
        expect(appends).toBe(1);
      });
    }

    it("names what makes a topic that is missing, or makes it when it is told to", async () => {
      const lost = { ...message("1"), topic: "billing" };
      const [failure] = await publish([lost]);
      expect(failure).toMatchObject({ status: "failed", scope: "message", retriable: true, code: "UNKNOWN_TOPIC" });
      expect(JSON.stringify(failure)).toContain("rowpost queue create billing");
      const [sent] = await publish([lost], { createTopics: { partitions: 2 } });
      expect(sent?.status).toBe("sent");
      expect((await queue.topics()).find(({ topic }) => topic === "billing")?.partitions).toBe(2);
    });

    it("refuses for good what the queue cannot have, and it alone", async () => {
      const results = await publish([
        { ...message("1"), topic: "Orders" },
        { ...message("2"), body: "x".repeat(4_194_305), contentType: "text/plain" },
        message("3"),
      ]);
      expect(results).toMatchObject([
        { scope: "message", retriable: false, code: "INVALID_NAME" },
        { scope: "message", retriable: false, code: "INVALID_MESSAGE" },
        { status: "sent" },
      ]);
    });

    it("takes the same source id once in direct appends, and none in a transaction of the user's", async () => {
      const orders = { topic: "orders", key: "1", body: 1, sourceId: "import-7/1" };
      const [id] = await queue.append([orders]);
      expect(await queue.append([{ ...orders, body: 2 }, { ...orders, sourceId: "import-7/2" }, orders])).toMatchObject(
        [id, expect.stringMatching(/^\d+$/), id],
      );
      expect(await appendedTo(place, "orders")).toHaveLength(2);
      await expect(outbox.transaction((tx) => queue.append(tx, [orders]))).rejects.toMatchObject({
        code: "INVALID_MESSAGE",
      });
      await expect(queue.append([{ ...orders, sourceId: "订单" }])).rejects.toMatchObject({ code: "INVALID_MESSAGE" });
    });
  });

  if (!isServer) return;

  it("has each message once when the answer to a commit is lost", { timeout: 60_000 }, async () => {
    await enqueue(...Array.from({ length: 20 }, (_, index) => order(String(index))));
    const address = new URL(place.address.url);
    const proxy = await createTcpProxy({ target: { host: address.hostname, port: Number(address.port) } });
    address.port = String(proxy.port);
    const through = place.address.kind === "mysql" ? mysql({ url: address.href }) : postgres({ url: address.href });
    const own = createQueue({ database: through });
    let cutting: Promise<void> | undefined;
    try {
      await drain(through, {
        broker: queueBroker({ queue: own }),
        onFaultPoint(point) {
          if (point !== "beforeCommit" || cutting !== undefined) return;
          proxy.mute("toClient");
          const before = proxy.bytesToTarget();
          cutting = cutAfterCommit(before);
        },
      });
    } finally {
      await cutting;
      await own.close();
      await through.close();
      await proxy.close();
    }
    expect(cutting).toBeDefined();
    const appended = await appendedTo(place, "orders");
    expect(appended.map(({ key }) => Number(key)).sort((left, right) => left - right)).toEqual(
      Array.from({ length: 20 }, (_, index) => index),
    );
    const receipts = (await rows()).map((row) => String(row["message_id"]));
    expect(receipts.toSorted(byText)).toEqual(appended.map(({ id }) => id).toSorted(byText));

    /** Until the rows are `sent` for everybody else. */
    async function cutAfterCommit(before: number): Promise<void> {
      while (proxy.bytesToTarget() === before) await new Promise((resolve) => setTimeout(resolve, 1));
      while ((await rows()).every(({ state }) => Number(state) !== 2)) {}
      await proxy.cut();
      proxy.unmute();
    }
  });
});

/** What the counter says at the beginning of a month. */
function startOf(month: number): bigint {
  return BigInt(Date.UTC(Math.floor(month / 100), (month % 100) - 1) - QUEUE_EPOCH_MS) << 16n;
}

function byText(left: string | null | undefined, right: string | null | undefined): number {
  return String(left) < String(right) ? -1 : 1;
}
