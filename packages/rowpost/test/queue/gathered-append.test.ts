/** Appends of one process that come together: who shares a transaction, and who waits for whom. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { compareIds } from "../../src/runtime/compare-ids.ts";
import type { Executor } from "../../src/transactions/executor.ts";
import { gate } from "./members.ts";
import { describeOnAll, type OpenQueue, openQueue } from "./places.ts";

describeOnAll("appends that come together", (make, { isServer }) => {
  let opened: OpenQueue;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 2 });
  });
  afterEach(() => opened.close());

  it("are all there, each with its own ids, in the order of the calls", async () => {
    const { queue } = opened;
    await queue.createTopic({ topic: "bills" });
    const calls = Array.from({ length: 60 }, (_, call) =>
      queue.append(
        Array.from({ length: (call % 3) + 1 }, (_each, index) => ({
          topic: call % 5 === 0 ? "bills" : "orders",
          key: `${call}-${index}`,
          body: call,
          orderingKey: "one",
        })),
      ),
    );
    const ids = await Promise.all(calls);
    for (const topic of ["bills", "orders"]) {
      const wanted = ids.flatMap((list, call) =>
        (call % 5 === 0) === (topic === "bills") ? list.map((id, index) => ({ id, key: `${call}-${index}` })) : [],
      );
      const { messages } = await queue.search({ topic, limit: 1_000 });
      const found = messages
        .map(({ id, key }) => ({ id, key }))
        .toSorted((left, right) => compareIds(left.id, right.id));
      expect(found).toEqual(wanted);
    }
  });

  it("say when a statement with rows has been sent, each time, before the append is done", async () => {
    const { database } = opened;
    const store = database.queue.store();
    const [topic] = await store.topics.list("orders");
    const message = { partition: 0, body: "1", key: null, type: null, contentType: null, headers: null };
    const none = { orderingKey: null, delayMs: null, deliverAtMs: null, sourceId: null };
    const request = {
      topic: "orders",
      keyedPartitions: topic?.keyedPartitions ?? 0,
      producer: { group: null, ip: null, port: null },
      messages: Array.from({ length: 1_200 }, () => ({ ...message, ...none })),
    };
    const seen: string[] = [];
    await database.transaction(async (tx) => {
      const run: Executor["run"] = (statement) => tx.run(statement).finally(() => void seen.push(statement.name));
      const appended = store.beginAppend({ ...tx, run }).append({ ...request, onSent: () => void seen.push("sent") });
      expect(await appended).toMatchObject({ ids: expect.any(Array) });
    });
    const written = seen.filter((name) => name === "sent" || name === "appendMessages");
    const inserts = written.filter((name) => name !== "sent").length;
    expect(inserts).toBeGreaterThan(1);
    expect(written).toEqual(Array.from({ length: inserts }, () => ["sent", "appendMessages"]).flat());
    await store.close();
  });

  if (isServer) {
    it("do not wait for another topic, whose counter somebody holds", async () => {
      const { queue, database } = opened;
      await queue.createTopic({ topic: "held" });
      const [holding, end] = [gate(), gate()];
      const holder = database.transaction(async (tx) => {
        await queue.append(tx, [{ topic: "held", body: 1 }]);
        holding.open();
        await end.opened;
      });
      await holding.opened;
      const waiting = queue.append({ topic: "held", body: 2 });
      expect(await queue.append({ topic: "orders", body: 3 })).toHaveLength(1);
      end.open();
      await holder;
      expect(await waiting).toHaveLength(1);
    });
  }
});
