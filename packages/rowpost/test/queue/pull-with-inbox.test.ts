/** Pulled messages handled through the inbox: effects that are there once, as the docs say. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { createInbox, fromQueue, type Inbox } from "../../src/inbox/index.ts";
import type { PulledMessage } from "../../src/queue/index.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

describeOnEach("pulled messages through the inbox", (make) => {
  let opened: OpenQueue;
  let inbox: Inbox;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    inbox = createInbox({ database: opened.database, consumer: "billing" });
    await inbox.migrate();
    await opened.place.query("CREATE TABLE bill (order_key VARCHAR(20))");
  });
  afterEach(() => opened.close());

  async function bill(message: PulledMessage): Promise<string> {
    const isKnown = message.key !== undefined && message.type !== undefined;
    const identity = isKnown ? fromQueue(message) : { type: message.topic, key: message.id };
    const { outcome } = await inbox.handle(opened.database, { message: identity }, async (tx) => {
      await tx.query(`INSERT INTO bill VALUES ('${message.key ?? "none"}')`);
    });
    return outcome;
  }

  it("leave one effect each, though the member stopped between the effect and the settle", async () => {
    const { queue, place } = opened;
    await queue.append([
      { topic: "orders", type: "order.created", key: "A1", body: 1 },
      { topic: "orders", body: 2 },
    ]);
    const outcomes: string[][] = [];
    for (const settles of [false, true]) {
      const puller = await queue.pull({ topic: "orders", group: "billing", logger: "silent", drainTimeoutMs: 0 });
      const messages: PulledMessage[] = [];
      while (messages.length < 2) messages.push(...(await puller.receive({ max: 2 - messages.length })));
      const round: string[] = [];
      for (const message of messages) {
        round.push(await bill(message));
        if (settles) await message.settle();
      }
      outcomes.push(round);
      await puller.stop();
    }
    expect(outcomes).toEqual([
      ["handled", "handled"],
      ["duplicate", "duplicate"],
    ]);
    expect(await place.query("SELECT order_key FROM bill ORDER BY order_key")).toEqual([
      { order_key: "A1" },
      { order_key: "none" },
    ]);
    expect(await queue.verify({ topic: "orders" })).toMatchObject({ complete: true, problems: [] });
  });
});
