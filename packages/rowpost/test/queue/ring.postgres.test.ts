/** What wakes the consumers of other processes on PostgreSQL: each append, at its commit. */
import { expect, it } from "vitest";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue, type QueueMessage } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

describeWithService("postgres", "the ring of an append", ({ name }) => {
  it("reaches another process once for each transaction, of one partition or several, and none rolled back", async () => {
    const made = await createTestDatabase(name);
    const [database, other] = [postgres({ url: made.url }), postgres({ url: made.url })];
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2 });
    const several = ["a", "b", "c", "d"].map((orderingKey) => ({ topic: "orders", orderingKey, body: 1 }));
    const one: QueueMessage[] = [{ topic: "orders", body: 1 }];
    let rings = 0;
    let heard = (): void => undefined;
    const stop = other.queue.doorbell.subscribe(() => {
      rings += 1;
      heard();
    });
    const ringOf = async (append: () => Promise<unknown>): Promise<void> => {
      const ring = new Promise<void>((resolve) => {
        heard = resolve;
      });
      await append();
      await ring;
    };
    const listening = await other.queue.listen();
    expect(rings, "once when it begins to listen").toBe(1);
    await ringOf(() => queue.append(one));
    const partitions = new Set((await queue.search({ topic: "orders" })).messages.map(({ partition }) => partition));
    expect(partitions.size).toBe(1);
    await ringOf(() => queue.append(several));
    const both = new Set((await queue.search({ topic: "orders" })).messages.map(({ partition }) => partition));
    expect(both.size).toBe(2);
    await ringOf(() => database.transaction((tx) => queue.append(tx, one)));
    const rolledBack = database.transaction(async (tx) => {
      await queue.append(tx, one);
      throw new Error("rolled back");
    });
    await expect(rolledBack).rejects.toThrow("rolled back");
    await ringOf(() => database.transaction((tx) => queue.append(tx, several)));
    expect(rings).toBe(5);
    stop();
    await listening?.close();
    await queue.close();
    for (const each of [database, other]) await each.close();
    await made.drop();
  });
});
