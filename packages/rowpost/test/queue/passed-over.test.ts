/** What a group passes over: messages of other types, and those that have expired. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConfigurationError } from "../../src/index.ts";
import { queueIdOfDate } from "../../src/message/queue-id.ts";
import type { Queue, QueueMessage } from "../../src/queue/index.ts";
import { createRecalling } from "../../src/queue/recalling/recall.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { until } from "../until.ts";
import { isDone, type Members, recordsOf } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const SHORT_RETRY = { baseMs: 1, maxMs: 1 };
const NOT_OURS = "not of the group's types: ";

describeOnEach("what a group passes over", (make) => {
  let opened: OpenQueue;
  let queue: Queue;
  let members: Members;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ queue, members } = opened);
  });
  afterEach(() => opened.close());

  const done = (): Promise<boolean> => isDone(queue);

  /** `number messages result error` of each record. */
  const records = (ids: readonly string[]): Promise<string[]> =>
    recordsOf(queue, ids, ({ batch, result, error }) => `${batch?.messages ?? 1} ${result} ${error ?? "-"}`);

  const typed = (type: string | undefined, more: Partial<QueueMessage> = {}): QueueMessage => ({
    topic: "orders",
    body: 0,
    ...more,
    ...(type === undefined ? {} : { type }),
  });

  it.each([
    ["parallel", {}],
    ["in blocked order", { onFailed: "block" }],
    ["transactional", { transactional: true }],
    ["records of batches", { records: "batch" }],
  ] as const)("%s: other types have a record and no call; the group goes on", async (_how, how) => {
    const called: string[] = [];
    let failures = 0;
    const ids = await queue.append([
      ...[typed("paid", { orderingKey: "one" }), typed("shipped", { orderingKey: "one" }), typed(undefined)],
      ...[typed("shipped", { delayMs: 86_400_000 }), typed("paid"), typed("refunded")],
    ]);
    await members.start({
      ...how,
      types: ["paid", "refunded"],
      retry: SHORT_RETRY,
      handler({ id, type = "" }) {
        called.push(type);
        if (id === ids[0] && failures++ === 0) throw new Error("not yet");
      },
    });
    await until(async () => called.length === 4 && (await done()));
    await members.stopAll();
    expect(called.toSorted()).toEqual(["paid", "paid", "paid", "refunded"]);
    // One row about both, which each of them finds.
    const together = "records" in how ? 2 : 1;
    expect(await records(ids)).toEqual([
      ...["0 1 failed not yet", "0 1 consumed -"],
      ...[`1 1 skipped ${NOT_OURS}shipped`, `2 1 skipped ${NOT_OURS}no type`, `3 1 skipped ${NOT_OURS}shipped`],
      ...[`4 ${together} consumed -`, `5 ${together} consumed -`],
    ]);
    expect((await queue.verify({ topic: "orders", group: "billing" })).problems).toEqual([]);
  });

  it("a redelivery of a type that the group takes no more is skipped, and pulls are given none", async () => {
    const [id = ""] = await queue.append([typed("shipped")]);
    await members.start({ retry: { baseMs: 1_000_000_000, maxMs: 1_000_000_000 }, handler: fail });
    await until(async () => (await queue.groups({ topic: "orders" }))[0]?.waiting.count === 1);
    await members.stopAll();
    await queue.redeliver({ topic: "orders", group: "billing", author: "ann", reason: "test", ids: [id] });
    const puller = await queue.pull({ topic: "orders", group: "billing", types: ["paid"], logger: "silent" });
    const ids = await queue.append([typed("shipped"), typed("paid")]);
    const [message, ...others] = await puller.receive();
    expect([message?.id, others]).toEqual([ids[1], []]);
    await message?.settle();
    await until(done);
    await puller.stop();
    expect((await records([id, ...ids])).filter((each) => each.includes("skipped"))).toEqual([
      `0 1 skipped ${NOT_OURS}shipped`,
      `1 1 skipped ${NOT_OURS}shipped`,
    ]);
  });

  it.each([
    ["parallel", {}],
    ["transactional", { transactional: true }],
  ] as const)("%s: what has expired before an attempt is skipped, and its record says so", async (_how, how) => {
    const at = new Date(Date.now() + 3_600_000);
    // Only the wall clock of this member is moved: it is an hour later from the second attempt on.
    let laterMs = 0;
    const called: string[] = [];
    const ids = await queue.append([
      { topic: "orders", key: "gone", body: 0, expiresAt: new Date(Date.now() - 1_000) },
      { topic: "orders", key: "fails", body: 0, expiresAt: at.toISOString() },
      { topic: "orders", key: "lasts", body: 0, expiresAt: new Date(Date.now() + 86_400_000) },
    ]);
    await members.start({
      ...how,
      retry: SHORT_RETRY,
      clock: { ...systemClock, wallMs: () => systemClock.wallMs() + laterMs },
      handler({ key = "" }) {
        called.push(key);
        if (key !== "fails") return;
        laterMs = 3_600_001;
        throw new Error("not yet");
      },
    });
    await until(async () => called.length === 2 && (await done()));
    await members.stopAll();
    expect(called).toEqual(["fails", "lasts"]);
    const [gone, fails, skipped, lasts, ...more] = await records(ids);
    expect([gone?.slice(0, 22), fails, skipped, lasts, more]).toEqual([
      ...[
        "0 1 skipped expired at",
        "1 1 failed not yet",
        `1 1 skipped expired at ${at.toISOString()}`,
        "2 1 consumed -",
        [],
      ],
    ]);
  });

  it.each([
    ["parallel", {}],
    ["transactional", { transactional: true }],
  ] as const)(
    "%s: a recalled message is skipped by who has not begun with it, and says who took it back",
    async (_how, how) => {
      const by = { topic: "orders", author: "ann", reason: "价格错了" };
      const called: string[] = [];
      const options = {
        ...how,
        retry: { baseMs: 1_000_000_000, maxMs: 1_000_000_000 },
        handler({ key = "" }: { readonly key?: string | undefined }) {
          called.push(key);
          if (key === "fails") throw new Error("not yet");
        },
      };
      const ids = await queue.append([
        { topic: "orders", key: "fails", body: 0, headers: { own: "é" } },
        { topic: "orders", key: "delayed", body: 0, delayMs: 86_400_000 },
        { topic: "orders", key: "consumed", body: 0 },
      ]);
      await members.start(options);
      await until(async () => called.length === 2 && (await queue.groups({ topic: "orders" }))[0]?.waiting.count === 2);
      await members.stopAll();
      ids.push(...(await queue.append({ topic: "orders", key: "unread", body: 0 })));
      const states: (string | undefined)[] = [];
      for (const id of ids) states.push((await queue.recall({ ...by, id }))?.groups[0]?.state);
      expect(states).toEqual(["waiting", "waiting", "consumed", "unread"]);
      const waiting = ids.slice(0, 2);
      await queue.redeliver({ ...by, group: "billing", state: "waiting", ids: waiting });
      await members.start(options);
      await until(done);
      await members.stopAll();
      expect(called).toEqual(["fails", "consumed"]);
      const skipped = "1 skipped recalled by ann: 价格错了";
      const left = (await records(ids)).filter((each) => !each.includes("redelivered"));
      expect(left).toEqual(["0 1 failed not yet", `0 ${skipped}`, `1 ${skipped}`, "2 1 consumed -", `3 ${skipped}`]);
      expect((await queue.message("orders", ids[0] as string))?.headers).toMatchObject({ own: "é" });
      expect((await queue.verify({ topic: "orders", group: "billing" })).problems).toEqual([]);
    },
  );

  it("recalls no message that is not there, and none without a reason", async () => {
    const [id = ""] = await queue.append({ topic: "orders", body: 0 });
    const none = String(BigInt(id) + 64n);
    expect(await queue.recall({ topic: "orders", id: none, author: "ann", reason: "none" })).toBeUndefined();
    await expect(queue.recall({ topic: "orders", id, author: "ann", reason: " " })).rejects.toThrow(ConfigurationError);
    await expect(queue.recall({ topic: "nobody", id, author: "ann", reason: "x" })).rejects.toThrow("nobody");
  });

  it("recalls nothing of a month that is dropped between the look and the recall", async () => {
    const recalling = createRecalling(opened.database.queue.sql);
    await recalling.recall("orders", queueIdOfDate(new Date("2020-01-01T00:00:00Z")) ?? "", "too late");
    await recalling.close();
  });

  it("refuses types that are no list of texts, and an expiresAt that is no instant", async () => {
    for (const types of [[], "paid", [1]])
      await expect(members.start({ types: types as never, handler: fail })).rejects.toThrow(ConfigurationError);
    for (const expiresAt of ["tomorrow", new Date(NaN), 5])
      await expect(queue.append({ topic: "orders", body: 0, expiresAt: expiresAt as never })).rejects.toThrow(
        "expiresAt",
      );
  });
});

function fail(): never {
  throw new Error("no");
}
