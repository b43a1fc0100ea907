/** The detector finds what a group has passed without a record, and nothing else. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { queueMonth } from "../../src/message/queue-id.ts";
import { createQueue, type Queue, type QueueConsumeOptions, type VerifyAnswer } from "../../src/queue/index.ts";
import type { Rewinding } from "../../src/queue/rewinding/rewinding.ts";
import { openRooms } from "../../src/queue/rooms.ts";
import { type VerifyPosition, verifyQueue } from "../../src/queue/verifying/verify.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";
import { turnsDuring } from "./turns.ts";

const WHO = { author: "ann", reason: "test" };

describeOnEach("the detector", (make) => {
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;

  beforeEach(async () => {
    place = await make();
    database = place.open();
    queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2 });
  });
  afterEach(async () => {
    await queue.close();
    await place.drop();
  });

  /** Appends so many, a group reads them with some that fail and some that are late, and stops. */
  async function read(
    count: number,
    records: "each" | "batch",
    more: Partial<QueueConsumeOptions> = {},
  ): Promise<string[]> {
    const ids: string[] = [];
    for (let from = 0; from < count; from += 200) {
      const messages = Array.from({ length: Math.min(200, count - from) }, (_, n) => ({
        topic: "orders",
        key: String((from + n) % 100),
        body: n,
        ...((from + n) % 100 === 30 ? { delayMs: 3_600_000 } : {}),
      }));
      ids.push(...(await queue.append(messages)));
    }
    let seen = 0;
    const expected = count - ids.filter((_, n) => n % 100 === 30).length;
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      logger: "silent",
      records,
      retry: { maxAttempts: 1 },
      handler: ({ key }) => {
        seen += 1;
        if (key === "7") throw new Error("no");
      },
      ...more,
    });
    await vi.waitUntil(() => seen >= expected, { timeout: 60_000, interval: 5 });
    await consumer.stop();
    return ids;
  }

  const verify = (): Promise<VerifyAnswer> => queue.verify({ topic: "orders" });
  const change = (text: string): Promise<unknown> => place.query(text);

  it("finds nothing where nothing is wrong: failures, delays, rewinds and a group from the end", async () => {
    await read(1_200, "batch");
    const other = await queue.consume({
      topic: "orders",
      group: "late",
      from: "end",
      logger: "silent",
      handler: () => {},
    });
    await other.stop();
    expect(await verify()).toMatchObject({ problems: [], messages: 1_200, complete: true, next: undefined });
    const ids = await read(400, "each");
    await queue.rewind({ topic: "orders", group: "billing", to: { id: ids[100] as string }, ...WHO });
    await read(0, "batch");
    await queue.rewind({ topic: "orders", group: "billing", to: "end", ...WHO });
    await read(200, "batch");
    expect((await verify()).problems).toEqual([]);
  });

  it("lets the process do other work between its chunks, where the database answers within the call", async () => {
    await read(2_200, "batch");
    // Of 1,000 messages each.
    expect(await turnsDuring(verify)).toBeGreaterThan(2);
  });

  it.each(["each", "batch"] as const)("finds a lost message with records of %s", async (records) => {
    const ids = await read(600, records);
    const table = `orders_message_info_consumption_${queueMonth(ids[0] as string)}`;
    if (records === "each") {
      await change(`DELETE FROM ${table} WHERE message_id IN (${ids[111]}, ${ids[112]}, ${ids[250]})`);
      const { problems } = await verify();
      expect(problems.reduce((sum, { messages }) => sum + messages, 0)).toBe(3);
      expect(problems).toContainEqual({
        group: "billing",
        partition: Number(BigInt(ids[250] as string) % 64n),
        fromId: ids[250],
        toId: ids[250],
        messages: 1,
      });
    } else {
      // One of a batch: which one, nobody can tell.
      await change(
        `UPDATE ${table} SET messages = messages - 1 WHERE last_message_id IS NOT NULL AND message_id = (SELECT id FROM (SELECT MIN(message_id) AS id FROM ${table} WHERE last_message_id IS NOT NULL) AS t)`,
      );
      expect((await verify()).problems).toMatchObject([{ group: "billing", messages: 1 }]);
      await change(`DELETE FROM ${table} WHERE last_message_id IS NOT NULL`);
      const { problems } = await verify();
      expect(problems.reduce((sum, { messages }) => sum + messages, 0)).toBe(600 - 12);
    }
    // One that somebody has redelivered has a record of that, and none of an outcome.
    await queue.redeliver({ topic: "orders", group: "billing", state: "waiting", all: true, ...WHO });
    // A dead letter that went without a trace is one too; that it failed once is in the records.
    await change("DELETE FROM message_redelivery WHERE attempt = 0");
    expect((await verify()).problems.length).toBeGreaterThan(2);
  });

  it("goes on where its time was over: within a partition, and between them", { timeout: 120_000 }, async () => {
    const ids = await read(2_400, "batch");
    const other = await queue.consume({ topic: "orders", group: "stock", logger: "silent", handler: () => {} });
    await vi.waitUntil(async () => (await queue.groups({ topic: "orders", group: "stock" }))[0]?.lag.count === 0, {
      timeout: 60_000,
      interval: 20,
    });
    await other.stop();
    const table = `orders_message_info_consumption_${queueMonth(ids[0] as string)}`;
    await change(`DELETE FROM ${table} WHERE consumer_group_id = 'stock' AND last_message_id IS NOT NULL`);
    const whole = await verify();
    expect(whole).toMatchObject({ complete: true, messages: 4_800 });
    const logs: string[] = [];
    const store = database.queue.store();
    const rooms = openRooms(database.queue.sql);
    const parts = {
      store: rooms.verifying,
      rewinds: {
        log: (...[key, limit]: Parameters<Rewinding["log"]>) => {
          logs.push(key.group);
          return rewinding.log(key, limit);
        },
      },
      requireTopic: (topic: string) => store.topics.list(topic),
      monotonicMs: () => performance.now(),
    };
    const { rewinding } = rooms;
    expect(await verifyQueue(parts, { topic: "orders" })).toEqual(whole);
    expect(logs).toEqual(["billing", "stock"]);
    // The time is over whenever it is looked at, after the first time.
    let nowMs = 0;
    const hurried = { ...parts, monotonicMs: () => (nowMs += 1) };
    const answers: VerifyAnswer[] = [];
    for (let after: VerifyPosition | undefined; ; ) {
      const answer = await verifyQueue(hurried, { topic: "orders", timeLimitMs: 1, ...(after && { after }) });
      answers.push(answer);
      after = answer.next;
      if (answer.complete) break;
    }
    // 1,200 messages in each place: after 1,000 of them, and at the end of the others but the last.
    expect(answers.map(({ messages }) => messages)).toEqual([1_000, 200 + 1_000, 200 + 1_000, 200 + 1_000, 200]);
    const missing = (list: readonly VerifyAnswer[]) =>
      list.flatMap(({ problems }) => problems).reduce((sum, { messages }) => sum + messages, 0);
    expect(missing(answers)).toBe(missing([whole]));
    await rooms.close();
    await store.close();
  });

  it("is asked by a running consumer, which logs what is missing", async () => {
    const ids = await read(200, "each");
    const table = `orders_message_info_consumption_${queueMonth(ids[0] as string)}`;
    await change(`DELETE FROM ${table} WHERE message_id = ${ids[111]}`);
    await change("UPDATE message_topic SET housekept_at = NULL");
    const errors: { readonly message: string; readonly fields: unknown }[] = [];
    const logger = {
      ...silentLogger,
      error: (message: string, fields: unknown) => void errors.push({ message, fields }),
    };
    const consumer = await queue.consume({ topic: "orders", group: "billing", logger, handler: () => {} });
    await vi.waitUntil(() => errors.length > 0, { timeout: 60_000, interval: 20 });
    await consumer.stop();
    const partition = Number(BigInt(ids[111] as string) % 64n);
    expect(errors).toEqual([
      {
        message: "messages below a group's progress have no record",
        fields: {
          topic: "orders",
          messages: 1,
          problems: [{ group: "billing", partition, fromId: ids[111], toId: ids[111], messages: 1 }],
        },
      },
    ]);
  });

  it("takes what a rewind has set aside meanwhile for nothing lost", async () => {
    const ids = await read(100, "each");
    const rooms = openRooms(database.queue.sql);
    const { verifying, rewinding } = rooms;
    let isRewound = false;
    const answer = await verifyQueue(
      {
        store: {
          ...verifying,
          async chunk(request) {
            // Behind the look at the progress: the delayed message is no redelivery any more.
            if (!isRewound)
              await queue.rewind({ topic: "orders", group: "billing", to: { id: ids[0] as string }, ...WHO });
            isRewound = true;
            return await verifying.chunk(request);
          },
        },
        rewinds: { log: (key, limit) => rewinding.log(key, limit) },
        requireTopic: () => Promise.resolve(),
        monotonicMs: () => performance.now(),
      },
      { topic: "orders" },
    );
    expect(answer.problems).toEqual([]);
    await rooms.close();
  });

  it("says so when the topic or the group is not there, or the position is none", async () => {
    await expect(queue.verify({ topic: "other" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    const group = "nobody";
    await expect(queue.verify({ topic: "orders", group })).rejects.toMatchObject({ code: "UNKNOWN_GROUP" });
    for (const [after, code] of [
      [{ group, partition: 0, id: "-1" }, "INVALID_ID"],
      [{ group, partition: 0.5, id: "1" }, "CONFIGURATION"],
      [{ group, partition: 0, id: "1", more: 1 }, "CONFIGURATION"],
      [{ group: "a'b", partition: 0, id: "1" }, "INVALID_NAME"],
    ] as const) {
      await expect(queue.verify({ topic: "orders", after: after as VerifyPosition })).rejects.toMatchObject({ code });
    }
  });

  it("finds messages that the progress was moved past", async () => {
    await read(400, "each");
    const fresh = await queue.append(Array.from({ length: 5 }, (_, n) => ({ topic: "orders", body: n })));
    const partition = Number(BigInt(fresh[0] as string) % 64n);
    const behind = String(BigInt(fresh[4] as string) + 1n);
    await change(`UPDATE message_consumption SET next_message_id = ${behind} WHERE partition_no = ${partition}`);
    expect((await verify()).problems).toEqual([
      { group: "billing", partition, fromId: fresh[0], toId: fresh[4], messages: 5 },
    ]);
    // A rewind that passes over them says so.
    await change(`UPDATE message_consumption SET next_message_id = ${fresh[0]} WHERE partition_no = ${partition}`);
    await queue.rewind({ topic: "orders", group: "billing", to: "end", ...WHO });
    expect((await verify()).problems).toEqual([]);
  });
});
