/** The detector finds what a group has passed without a record, and nothing else. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { queueMonth } from "../../src/message/queue-id.ts";
import { type ConsumeOptions, createQueue, type Queue, type VerifyAnswer } from "../../src/queue/index.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

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
  async function read(count: number, records: "each" | "batch", more: Partial<ConsumeOptions> = {}): Promise<string[]> {
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
      ...{ topic: "orders", group: "billing", logger: "silent", records, retry: { maxAttempts: 1 } },
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

  it.each(["each", "batch"] as const)("finds a lost message with records of %s", async (records) => {
    const ids = await read(600, records);
    const table = `orders_message_info_consumption_${queueMonth(ids[0] as string)}`;
    if (records === "each") {
      await change(`DELETE FROM ${table} WHERE message_id IN (${ids[111]}, ${ids[112]}, ${ids[250]})`);
      const { problems } = await verify();
      expect(problems.reduce((sum, { messages }) => sum + messages, 0)).toBe(3);
      expect(problems).toContainEqual({
        ...{ group: "billing", partition: Number(BigInt(ids[250] as string) % 64n) },
        ...{ fromId: ids[250], toId: ids[250], messages: 1 },
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
    // A dead letter that went without a trace is one too; that it failed once is in the records.
    await change("DELETE FROM message_redelivery WHERE attempt = 0");
    expect((await verify()).problems.length).toBeGreaterThan(2);
  });

  it("finds messages that the progress was moved past, and goes on where its time was over", async () => {
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
    await expect(queue.verify({ topic: "orders", chunk: 1 } as never)).rejects.toMatchObject({ code: "CONFIGURATION" });
  });
});
