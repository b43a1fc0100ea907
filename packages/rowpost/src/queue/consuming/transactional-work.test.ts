/** A message that arrives just as the loop of a partition ends must be handled. */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createHandlingReports } from "../../runtime/handling-reports.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { silentMetrics } from "../../runtime/metrics.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { StoredQueueMessage } from "../store.ts";
import { deliveryOf } from "./delivery.ts";
import { consumerSettings } from "./options.ts";
import { createPartition, type Partition } from "./partition.ts";
import { createTransactionalWork } from "./transactional-work.ts";
import type { WorkOptions } from "./work.ts";

const tx: Transaction = {
  kind: "test",
  run: () => Promise.resolve({ rows: [], affected: 1 }),
  query: () => Promise.resolve([]),
};

function message(id: string): StoredQueueMessage {
  return {
    id,
    partition: 0,
    key: null,
    type: null,
    body: "{}",
    contentType: null,
    headers: null,
    orderingKey: null,
    dueInMs: 0,
  };
}

test.each(Array.from({ length: 20 }, (_, turns) => turns))(
  "a message is handled that comes %i turns after the last one was settled",
  async (turns) => {
    const handled: string[] = [];
    const settings = consumerSettings({
      topic: "orders",
      group: "g",
      transactional: true,
      handler: ({ id }) => void handled.push(id),
    });
    const partition = createPartition({
      progress: { partition: 0, nextId: "1", round: 0, epoch: "1" },
      settings,
      isSilent: false,
      store: { read: () => Promise.resolve([]) },
      months: () => Promise.resolve([]),
    });
    const add = (id: string): void => {
      const delivery = deliveryOf(message(id));
      partition.window.push(delivery);
      work.begin(partition, [delivery]);
    };
    async function addLater({ window }: Partition): Promise<void> {
      if (handled.length > 1 || window.length > 0) return;
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      add("128");
    }
    const options: WorkOptions = {
      settings,
      store: {
        heldUp: () => Promise.resolve([]),
        isConflict: (error): error is Error => error === undefined,
        settle: () => Promise.resolve(true),
        settleIn: () => Promise.resolve(true),
      },
      place: { ip: null, port: null, instance: "test" },
      reports: createHandlingReports({ consumer: "g", metrics: silentMetrics, logger: silentLogger }),
      onFencedOut: () => undefined,
      onSettled: (settled) => void addLater(settled),
      transaction: (run) => run(tx),
    };
    const work = createTransactionalWork(options);
    add("64");
    for (let turn = 0; turn < 100 && handled.length < 2; turn += 1) await setImmediate();
    expect(handled).toEqual(["64", "128"]);
  },
);
