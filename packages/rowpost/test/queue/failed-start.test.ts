/** A member whose start fails half way. */
import { expect, it } from "vitest";
import { startConsumer } from "../../src/queue/consuming/consumer.ts";
import { observed } from "../../src/queue/consuming/observed.ts";
import { consumerSettings } from "../../src/queue/consuming/options.ts";
import { createWatch } from "../../src/queue/consuming/watch.ts";
import { silentMetrics } from "../../src/runtime/metrics.ts";
import { describeOnEach, openQueue } from "./places.ts";

const KEY = { topic: "orders", group: "billing" };

describeOnEach("a start that fails", (make) => {
  it("gives back the partitions that it took", async () => {
    const opened = await openQueue(make, { partitions: 2 });
    const { database, place } = opened;
    const store = database.queue.store();
    const whole = store.consumption(KEY, { lockWaitTimeoutMs: 1_000 });
    const settings = consumerSettings({ ...KEY, handler: () => undefined });
    const starting = startConsumer({
      ...observed(settings, silentMetrics),
      store: { ...whole, progress: () => Promise.reject(new Error("cut here")) },
      topics: store.topics,
      place: { ip: null, port: null },
      watch: createWatch(database.queue),
      transaction: (work) => database.transaction(work),
    });
    await expect(starting).rejects.toThrow("cut here");
    const rows = await place.query("SELECT owner FROM message_consumption");
    expect(rows.map(({ owner }) => owner)).toEqual([null, null]);
    await store.close();
    await opened.close();
  });
});
