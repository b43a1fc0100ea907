/** The milestones that messages are counted by: who sets them, and what happens meanwhile. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { openRoom } from "../../src/databases/sql/queue/room.ts";
import { setTopicMilestones } from "../../src/queue/rewinding/milestones.ts";
import { createRewinding } from "../../src/queue/rewinding/rewinding.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";
import { turnsDuring } from "./turns.ts";

const EVERY = 5_000;
const OLD = 202601;

describeOnEach("milestones", (make) => {
  let opened: OpenQueue;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
  });
  afterEach(() => opened.close());

  const append = (messages: number): Promise<string[]> =>
    opened.queue.append(Array.from({ length: messages }, () => ({ topic: "orders", body: 1 })));
  const milestones = async (): Promise<number> =>
    (await opened.place.query("SELECT partition_no FROM message_milestone")).length;
  async function makeOld(): Promise<void> {
    const store = opened.database.queue.store();
    await store.topics.makeMonths("orders", [OLD]);
    await store.close();
  }

  it("are set by a running consumer", async () => {
    await append(EVERY + 1);
    const consumer = await opened.queue.consume({ topic: "orders", group: "billing", from: "end", handler: () => {} });
    await expect.poll(milestones, { timeout: 60_000 }).toBe(1);
    await consumer.stop();
  });

  it("let the process do other work while they are set, where the database answers within the call", async () => {
    await append(3 * EVERY);
    const rewinding = createRewinding(opened.database.queue.sql);
    const set = () => rewinding.setMilestones({ topic: "orders", fromMonth: 0, isOver: () => false });
    expect(await turnsDuring(set)).toBeGreaterThan(2);
    expect(await milestones()).toBe(3);
    await rewinding.close();
  });

  it("are set in the other months when one is dropped meanwhile", async () => {
    await append(EVERY);
    await makeOld();
    const session = await opened.database.connect({ purpose: "tool" });
    let isDropped = false;
    const room = openRoom(opened.database.queue.sql, {});
    await setTopicMilestones(
      room,
      async (statement) => {
        if (statement.name === "passedMilestones" && !isDropped) {
          isDropped = true;
          await session.run({ name: "drop", text: `DROP TABLE orders_message_info_${OLD}`, params: [] });
        }
        return await room.run(statement);
      },
      { topic: "orders", fromMonth: 0, isOver: () => false },
    );
    await session.close();
    await room.close();
    expect([isDropped, await milestones()]).toEqual([true, 1]);
  });

  it("that have no table yet keep a month from being dropped, whole", async () => {
    await makeOld();
    await opened.place.query("DROP TABLE message_milestone");
    const dropping = opened.queue.dropMonth({
      topic: "orders",
      month: OLD,
      author: "ann",
      reason: "no room",
      force: true,
    });
    await expect(dropping).rejects.toMatchObject({
      code: "SCHEMA",
      message: expect.stringContaining("queue.migrate()") as string,
    });
    expect(await opened.queue.months("orders")).toContain(OLD);
  });
});
