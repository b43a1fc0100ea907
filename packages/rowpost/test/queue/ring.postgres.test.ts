/** What wakes the consumers of other processes on PostgreSQL: each append, at its commit. */
import { expect, it } from "vitest";
import type { AppendNews, Database } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { partitionOfId } from "../../src/message/queue-id.ts";
import { createQueue, type QueueMessage } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

const ONE: QueueMessage[] = [{ topic: "orders", body: 1 }];

describeWithService("postgres", "the ring of an append", ({ name }) => {
  async function openBoth() {
    const made = await createTestDatabase(name);
    const [database, other] = [postgres({ url: made.url }), postgres({ url: made.url })];
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2 });
    return {
      database,
      other,
      queue,
      close: async (): Promise<void> => {
        await queue.close();
        for (const each of [database, other]) await each.close();
        await made.drop();
      },
    };
  }

  it("says up to which id each partition is committed, and nothing of what is rolled back", async () => {
    const { database, other, queue, close } = await openBoth();
    const several = ["a", "b", "c", "d"].map((orderingKey) => ({ topic: "orders", orderingKey, body: 1 }));
    const heard = listenTo(other);
    const listening = await other.queue.listen();
    expect(heard.all, "once when it begins to listen").toEqual([undefined]);
    const expected: string[] = [];
    const expectLastOf = async (ids: readonly string[]): Promise<number> => {
      const last = new Map(ids.map((id) => [partitionOfId(id), id]));
      expected.push(...last.values());
      await heard.until(expected.length + 1);
      return last.size;
    };
    expect(await expectLastOf(await queue.append(ONE))).toBe(1);
    expect(await expectLastOf(await queue.append(several))).toBe(2);
    const rolledBack = database.transaction(async (tx) => {
      await queue.append(tx, ONE);
      throw new Error("rolled back");
    });
    await expect(rolledBack).rejects.toThrow("rolled back");
    await expectLastOf(await database.transaction((tx) => queue.append(tx, several)));
    expect(heard.all.flatMap((news) => news?.lastId ?? []).toSorted()).toEqual(expected.toSorted());
    await listening?.close();
    await close();
  });

  it("does not hand out what is appended behind a pause", async () => {
    const { other, queue, close } = await openBoth();
    const others = createQueue({ database: other });
    const heard = listenTo(other);
    // Of one partition: the first of another one is a reason to look.
    const same: QueueMessage[] = [{ topic: "orders", orderingKey: "a", body: 1 }];
    const handled: string[] = [];
    const consumer = await others.consume({
      topic: "orders",
      group: "billing",
      handler: ({ id }) => void handled.push(id),
      // Between two looks of its own nothing but the ring tells it of the pause.
      poll: { minMs: 30_000, maxMs: 30_000 },
    });
    const before = await queue.append(same);
    await expect.poll(() => handled).toEqual(before);
    await queue.pause({ topic: "orders", group: "billing", author: "test", reason: "test" });
    for (let appended = 1; appended <= 5; appended += 1) {
      const [lastId = ""] = await queue.append(same);
      await heard.until((news) => news?.lastId === lastId);
    }
    await consumer.stop();
    expect(handled).toEqual(before);
    await others.close();
    await close();
  });
});

function listenTo({ queue }: Database) {
  const all: (AppendNews | undefined)[] = [];
  let look = (): void => undefined;
  queue.doorbell.subscribe((news) => {
    all.push(news);
    look();
  });
  return {
    all,
    async until(wanted: number | ((news: AppendNews | undefined) => boolean)): Promise<void> {
      const isThere = (): boolean => (typeof wanted === "number" ? all.length >= wanted : all.some(wanted));
      while (!isThere()) {
        await new Promise<void>((resolve) => {
          look = resolve;
        });
      }
    },
  };
}
