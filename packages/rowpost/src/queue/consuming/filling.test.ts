/** Which messages begin, and when, in partitions left by a member that fell silent. */
import { expect, test } from "vitest";
import { queueMonth } from "../../message/queue-id.ts";
import type { ConsumptionStore, StoredQueueMessage } from "../store.ts";
import type { Delivery } from "./delivery.ts";
import { createFilling, cutBack, type Filling } from "./filling.ts";
import { type ConsumerSettings, consumerSettings } from "./options.ts";
import { createPartition, type Partition } from "./partition.ts";

const settings = consumerSettings({ topic: "orders", group: "g", logger: "silent", handler: () => undefined });

function message(partition: number, id = String(partition)): StoredQueueMessage {
  return {
    id,
    partition,
    key: null,
    type: null,
    body: "{}",
    contentType: null,
    headers: null,
    orderingKey: null,
    dueInMs: 0,
  };
}

function open() {
  const begun: number[] = [];
  const store = {
    due: () => Promise.resolve([]),
    heldUp: () => Promise.resolve([]),
    recorded: () => Promise.resolve([]),
    read: ({ partition }: { readonly partition: number }) => Promise.resolve([message(partition)]),
  };
  const partitionOf = (partition: number): Partition =>
    createPartition({
      progress: { partition, nextId: "0", round: 0, epoch: "1" },
      settings,
      isSilent: true,
      store,
      months: () => Promise.resolve([queueMonth("1000")]),
    });
  const partitions = [partitionOf(0), partitionOf(1)] as const;
  const filling = createFilling({
    settings,
    store: store as unknown as ConsumptionStore,
    stopping: new AbortController().signal,
    held: new Map(partitions.map((each) => [each.partition, each])),
    work: {
      begin: (partition: Partition, deliveries: readonly Delivery[]) =>
        void begun.push(...deliveries.map(() => partition.partition)),
      look: () => undefined,
      close: () => undefined,
    },
    mark: () => Promise.resolve(true),
  });
  return { begun, filling, partitions };
}

test("new messages follow at once where no redelivery is due", async () => {
  const { begun, filling, partitions } = open();
  const [first] = partitions;
  expect(await filling.fill(first, "1000")).toBe(false);
  // The round goes on and rests only when nothing is left.
  expect(await filling.fillAgain(first)).toBe(true);
  expect(await filling.fill(first, "1000")).toBe(true);
  expect(begun).toEqual([0]);
});

test("one that was given back before it began keeps no other partition waiting", async () => {
  const { begun, filling, partitions } = open();
  const [first, second] = partitions;
  for (const each of partitions) await filling.fillAgain(each);
  await filling.fill(first, "1000");
  expect(await filling.fill(second, "1000")).toBe(false);
  cutBack(first);
  expect(await filling.fill(second, "1000")).toBe(true);
  expect(begun).toEqual([0, 1]);
});

/** A partition whose messages are read one by one, and the ids looked up. */
function ownedAt(epoch: string) {
  const looked: string[] = [];
  let next = "";
  const store = {
    heldUp: () => Promise.resolve([]),
    read: () => Promise.resolve([message(0, next)]),
    recorded(_round: number, ids: readonly string[]) {
      looked.push(...ids);
      return Promise.resolve([]);
    },
  };
  const partition = createPartition({
    progress: { partition: 0, nextId: "0", round: 0, epoch },
    settings,
    isSilent: false,
    store,
    months: () => Promise.resolve([queueMonth("1000")]),
  });
  const filling = fillingOf(settings, store, partition);
  return {
    looked,
    partition,
    fill: async (id: string, counter: string) => {
      next = id;
      expect(await filling.fill(partition, counter)).toBe(true);
    },
  };
}

test.each([
  ["2", ["64", "128"]],
  ["1", []],
])("the owner of epoch %s looks for the records of what was there before it", async (epoch, expected) => {
  const { looked, fill } = ownedAt(epoch);
  await fill("64", "128");
  await fill("128", "192");
  await fill("192", "192");
  expect(looked).toEqual(expected);
});

test("what was given back is looked for when it is read again, and nothing behind it", async () => {
  const { looked, partition, fill } = ownedAt("1");
  await fill("64", "64");
  cutBack(partition);
  await fill("64", "128");
  await fill("128", "128");
  expect(looked).toEqual(["64"]);
});

test("an owner looks for as many records as the one before it can have written ahead", async () => {
  const large = consumerSettings({ topic: "orders", group: "g", logger: "silent", batchSize: 10_000, handler: fail });
  let looked = 0;
  let last = 0;
  const store = {
    heldUp: () => Promise.resolve([]),
    read() {
      const first = last + 1;
      last += 10_000;
      return Promise.resolve(Array.from({ length: 10_000 }, (_, index) => message(0, String((first + index) * 64))));
    },
    recorded(_round: number, ids: readonly string[]) {
      looked += ids.length;
      return Promise.resolve([]);
    },
  };
  const partition = createPartition({
    progress: { partition: 0, nextId: "0", round: 0, epoch: "2" },
    settings: large,
    isSilent: false,
    store,
    months: () => Promise.resolve([queueMonth("1000")]),
  });
  const filling = fillingOf(large, store, partition);
  while (await filling.fill(partition, "6400000"));
  // The window is full, and every message in it may be recorded behind a slow head.
  expect([partition.window.length, looked]).toEqual([20_000, 20_000]);
});

function fail(): never {
  throw new Error("no handler is called here");
}

function fillingOf(settings: ConsumerSettings, store: unknown, partition: Partition): Filling {
  return createFilling({
    settings,
    store: store as ConsumptionStore,
    stopping: new AbortController().signal,
    held: new Map([[0, partition]]),
    mark: () => Promise.resolve(true),
    work: { begin: () => undefined, look: () => undefined, close: () => undefined },
  });
}
