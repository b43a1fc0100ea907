/** Consumer groups as people see them, and what they do to them while members run. */
import { hostname } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import { createGroups } from "../../src/queue/groups/looking.ts";
import type { Queue } from "../../src/queue/index.ts";
import type { Executor } from "../../src/transactions/executor.ts";
import { until } from "../until.ts";
import { gate, type Members, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

const LONG_RETRY = { baseMs: 1_000_000_000, maxMs: 1_000_000_000 };
const SHORT_RETRY = { baseMs: 1, maxMs: 1 };
const GROUP = { topic: "orders", group: "billing" } as const;
const BY = { ...GROUP, author: "wang", reason: "test" } as const;

describeOnEach("groups of the queue", (make) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let queue: Queue;
  let members: Members;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ place, queue, members } = opened);
  });
  afterEach(() => opened.close());

  /** `attempt result`, in order. */
  const recordsOf = async (id: string, group = "billing") => {
    const rows = await place.query(
      `SELECT attempt, result FROM orders_message_info_consumption_${queueMonth(id)} WHERE message_id = ${id} AND consumer_group_id = '${group}' ORDER BY attempt`,
    );
    return rows.map(({ attempt, result }) => `${String(attempt)} ${String(result)}`);
  };
  const redeliveries = async () =>
    (await place.query("SELECT state, attempt FROM message_redelivery ORDER BY message_id")).map(
      ({ state, attempt }) => `${String(state)} ${String(attempt)}`,
    );

  it("tells how far behind a group is, what stands at its head, and who holds what", async () => {
    const held = gate();
    const started: string[] = [];
    const consumer = await members.start({
      concurrency: 1,
      retry: LONG_RETRY,
      handler: async ({ key = "" }) => {
        started.push(key);
        if (key === "0") throw new Error("no stock for 0");
        if (key === "2") await held.opened;
      },
    });
    const ids = await queue.append(numbers(5));
    await until(async () => started.includes("2") && (await redeliveries()).length === 1);
    const [status, ...others] = await queue.groups({ topic: "orders" });
    expect(others).toEqual([]);
    expect(status).toMatchObject({
      group: "billing",
      paused: undefined,
      lag: { count: 3, atLeast: false },
      waiting: { count: 1, atLeast: false },
      dead: { count: 0, atLeast: false },
    });
    const [partition] = status?.partitions ?? [];
    expect(partition).toMatchObject({
      head: { id: ids[2], key: "2" },
      oldestWaiting: { id: ids[0], attempt: 1, error: "no stock for 0" },
      member: { owner: consumer.owner, label: `${hostname()}:${process.pid}` },
    });
    expect(Date.parse(partition?.member?.since ?? "")).toBeGreaterThan(0);
    expect(partition?.lagMs).toBeGreaterThan(0);
    expect(partition?.oldestUnfinishedMs).toBeGreaterThanOrEqual(partition?.lagMs ?? 0);
    expect((await queue.groups({ topic: "orders", countUpTo: 2 }))[0]?.lag).toEqual({ count: 2, atLeast: true });
    const [bounded] = await queue.groups({ topic: "orders", lagUpTo: 1 });
    expect([bounded?.lag, bounded?.waiting]).toEqual([{ count: 1, atLeast: true }, status?.waiting]);
    expect((await queue.months("orders")).length).toBeGreaterThanOrEqual(2);
    held.open();
    await until(async () => (await queue.groups({ topic: "orders" }))[0]?.lag.count === 0);
    await members.stopAll();
    expect((await queue.groups({ topic: "orders", group: "billing" }))[0]?.partitions[0]).toMatchObject({
      head: undefined,
      lagMs: 0,
      member: undefined,
    });
  });

  it("takes nothing that was appended after a pause, until it is resumed", async () => {
    const seen: Record<string, string[]> = { billing: [], stock: [] };
    for (const group of ["billing", "stock"])
      await members.start({ group, handler: ({ id }) => void seen[group]?.push(id) });
    const ids = await queue.append(numbers(3));
    await until(() => seen["billing"]?.length === 3 && seen["stock"]?.length === 3);
    expect(await queue.pause(BY)).toBe(true);
    expect(await queue.pause(BY)).toBe(false);
    for (let round = 0; round < 5; round += 1) ids.push(...(await queue.append(numbers(2))));
    await until(() => seen["stock"]?.length === 13);
    expect(seen["billing"]).toHaveLength(3);
    expect((await queue.groups({ topic: "orders", group: "billing" }))[0]?.paused).toMatchObject({
      author: "wang",
      reason: "test",
    });
    // A member that joins is paused too, and does not lift it.
    await members.stopAll();
    await members.start({ handler: ({ id }) => void seen["billing"]?.push(id) });
    expect(await queue.resume(BY)).toBe(true);
    expect(await queue.resume(BY)).toBe(false);
    await until(() => seen["billing"]?.length === 13);
    expect(seen["billing"]).toEqual(ids);
  });

  it("skips the message that holds a group up, and nothing that its handler writes late counts", async () => {
    const held = gate();
    const seen: string[] = [];
    await members.start({
      handler: async ({ id, key }) => {
        seen.push(id);
        // By the key: a handler may have a message before append() has told its id.
        if (key === "0") await held.opened;
      },
    });
    const ids = await queue.append(numbers(4));
    await until(() => new Set(seen).size === 4);
    await expect(queue.skip({ ...BY, id: ids[1] ?? "" })).rejects.toMatchObject({ code: "CANNOT_SKIP" });
    await queue.skip({ ...BY, id: ids[0] ?? "" });
    await until(async () => (await queue.groups({ topic: "orders" }))[0]?.lag.count === 0);
    held.open();
    await members.stopAll();
    expect(await recordsOf(ids[0] ?? "")).toEqual(["0 3"]);
    expect(await recordsOf(ids[1] ?? "")).toEqual(["1 0"]);
    expect(seen.filter((id) => id === ids[0])).toHaveLength(1);
    await expect(queue.skip({ ...BY, id: ids[0] ?? "" })).rejects.toMatchObject({ code: "CANNOT_SKIP" });
  });

  it("does not bring back a message that was skipped while its handler ran", async () => {
    const held = gate();
    let again = false;
    await members.start({
      retry: SHORT_RETRY,
      handler: async ({ attempt }) => {
        if (attempt === 1) throw new Error("once");
        again = true;
        await held.opened;
        throw new Error("twice");
      },
    });
    const [id = ""] = await queue.append(numbers(1));
    await until(() => again);
    await queue.skip({ ...BY, id });
    held.open();
    await until(async () => (await recordsOf(id)).length === 3);
    await members.stopAll();
    expect(await recordsOf(id)).toEqual(["0 3", "1 1", "2 1"]);
    expect(await redeliveries()).toEqual([]);
  });

  it("lists dead letters by error, page by page, and delivers them again with all their attempts", async () => {
    let isFixed = false;
    const attempts: string[] = [];
    await members.start({
      retry: { maxAttempts: 2, ...SHORT_RETRY },
      handler: ({ key, attempt }) => {
        attempts.push(`${key} ${attempt}`);
        if (!isFixed) throw new Error(Number(key) % 2 === 0 ? "no stock" : "no such customer");
      },
    });
    const ids = await queue.append(numbers(5));
    await until(async () => (await redeliveries()).join() === "1 2,1 2,1 2,1 2,1 2");
    const first = await queue.deadLetters({ topic: "orders", group: "billing", limit: 3 });
    const second = await queue.deadLetters({ topic: "orders", group: "billing", limit: 3, after: first.next });
    expect([...first.letters, ...second.letters].map(({ id }) => id)).toEqual(ids);
    expect(second.next).toBeUndefined();
    expect(first.letters[1]).toMatchObject({
      state: "dead",
      attempt: 2,
      error: "no such customer",
      message: { key: "1", body: 1 },
    });
    const customers = await queue.deadLetters({ topic: "orders", group: "billing", error: "customer" });
    expect(customers.letters.map(({ id }) => id)).toEqual([ids[1], ids[3]]);
    // Two attempts more, and dead again.
    expect(await queue.redeliver({ ...BY, ids: [ids[0] ?? "", "64"] })).toEqual({
      changed: 1,
      conflicts: [{ id: "64", state: "absent" }],
    });
    await until(async () => (await redeliveries())[0] === "1 4");
    expect(attempts.filter((each) => each.startsWith("0 "))).toEqual(["0 1", "0 2", "0 3", "0 4"]);
    isFixed = true;
    expect(await queue.redeliver({ ...BY, all: true, error: "no stock" })).toEqual({ changed: 3, conflicts: [] });
    await until(async () => (await redeliveries()).length === 2);
    expect(await queue.redeliver({ ...BY, all: true })).toEqual({ changed: 2, conflicts: [] });
    await until(async () => (await redeliveries()).length === 0);
    expect(await recordsOf(ids[0] ?? "")).toEqual(["-5 5", "-3 5", "1 1", "2 2", "3 1", "4 2", "5 0"]);
    const message = await queue.message("orders", ids[0] ?? "");
    expect(message?.attempts[0]).toMatchObject({ result: "redelivered", error: "wang: test" });
    await expect(queue.redeliver(BY)).rejects.toMatchObject({ code: "CONFIGURATION" });
  });

  it("discards dead letters, and edits one as a copy that only its group gets", async () => {
    const seen: Record<string, unknown[]> = { billing: [], stock: [] };
    for (const group of ["billing", "stock"]) {
      await members.start({
        group,
        retry: { maxAttempts: 1 },
        handler: ({ body }) => {
          seen[group]?.push(body);
          if (group === "billing" && body !== "mended") throw new Error("no");
        },
      });
    }
    const ids = await queue.append(numbers(2, { headers: { trace: "t1" } }));
    await until(async () => (await redeliveries()).join() === "1 1,1 1");
    expect(await queue.discard({ ...BY, ids: [ids[0] ?? ""] })).toEqual({ changed: 1, conflicts: [] });
    expect(await queue.discard({ ...BY, ids: [ids[0] ?? ""] })).toEqual({
      changed: 0,
      conflicts: [{ id: ids[0], state: "absent" }],
    });
    const copy = await queue.editDeadLetter({ ...BY, id: ids[1] ?? "", change: { body: "mended" } });
    await until(async () => seen["billing"]?.includes("mended") && (await recordsOf(copy, "stock")).length === 1);
    await members.stopAll();
    expect(seen["stock"]).toEqual([0, 1]);
    expect(await recordsOf(copy, "stock")).toEqual(["1 3"]);
    expect(await recordsOf(copy)).toEqual(["1 0"]);
    for (const id of ids) {
      expect(await recordsOf(id)).toEqual(["0 4", "1 2"]);
      const { attempts = [], groups = [] } = (await queue.message("orders", id)) ?? {};
      expect(attempts.map(({ group, result }) => `${group} ${result}`)).toEqual([
        ...["billing discarded", "billing dead", "stock consumed"],
      ]);
      expect(groups.map(({ group, state }) => `${group} ${state}`)).toEqual(["billing discarded", "stock consumed"]);
    }
    expect(await redeliveries()).toEqual([]);
    // Twice makes no second copy.
    const twice = queue.editDeadLetter({ ...BY, id: ids[1] ?? "", change: { body: "again" } });
    await expect(twice).rejects.toMatchObject({ code: "NO_DEAD_LETTER" });
    expect((await queue.groups({ topic: "orders", group: "billing" }))[0]?.lag.count).toBe(0);
  });

  it("lets the next of its key go behind one that is removed by a handle that renames columns", async () => {
    const ids = await queue.append(numbers(2, { orderingKey: "k" }));
    await members.start({ retry: LONG_RETRY, handler: () => Promise.reject(new Error("no")) });
    await until(async () => (await redeliveries()).length === 2);
    await members.stopAll();
    const groups = createGroups(opened.database.queue.sql);
    const camelCased = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    await opened.database.transaction(async (tx) => {
      const renaming: Executor = {
        kind: "renaming",
        async run(statement) {
          const { affected, rows } = await tx.run(statement);
          const renamed = rows.map((row) =>
            Object.fromEntries(Object.entries(row).map(([name, value]) => [camelCased(name), value])),
          );
          return { affected, rows: renamed };
        },
      };
      const note = { author: "wang", reason: "test", ip: null };
      const removal = { ids: [ids[0] ?? ""], from: "waiting or dead", result: "skipped", note } as const;
      expect(await groups.removeIn(renaming, GROUP, 0, removal)).toMatchObject([{ result: "changed" }]);
    });
    expect(await groups.page(GROUP, { partition: 0, id: "0" }, 10)).toMatchObject([
      { id: ids[1], nextAttemptAt: expect.any(String) as string },
    ]);
    await groups.close();
  });

  it("gives a redelivery up whose message is not there any more, and does not look again", async () => {
    const [id = ""] = await queue.append(numbers(1));
    await members.start({ handler: () => undefined });
    await until(async () => (await recordsOf(id)).length === 1);
    await place.query(
      `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, next_attempt_at, gmt_create, gmt_modified)
       VALUES ('orders', 'billing', 0, 64000000000, 0, 1, '2020-01-01 00:00:00', '2020-01-01 00:00:00', '2020-01-01 00:00:00')`,
    );
    await until(async () => (await redeliveries()).join() === "1 2");
    const { letters } = await queue.deadLetters({ topic: "orders", group: "billing" });
    expect(letters).toMatchObject([{ id: "64000000000", message: undefined }]);
    expect(letters[0]?.error).toContain("MESSAGE_GONE");
    expect(await queue.discard({ ...BY, all: true })).toEqual({ changed: 1, conflicts: [] });
  });

  it("refuses what cannot be, before any SQL, and groups that are not there", async () => {
    // There is not even a topic: whoever asked the database would hear of that.
    const names = ["Orders", "a'b", 'a"b', "a.b", "订单", "", "a".repeat(41)];
    for (const topic of names) {
      await expect(queue.groups({ topic })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(queue.pause({ ...BY, topic })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(queue.redeliver({ ...BY, topic, all: true })).rejects.toMatchObject({ code: "INVALID_NAME" });
    }
    const nowhere = { ...BY, topic: "nowhere" };
    for (const group of ["a'b", "", "组", "a".repeat(65)]) {
      await expect(queue.groups({ topic: "nowhere", group })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(queue.resume({ topic: "nowhere", group })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(queue.deadLetters({ topic: "nowhere", group })).rejects.toMatchObject({ code: "INVALID_NAME" });
    }
    for (const id of ["abc", "1'", "", "-1", "12345678901234567890", 12 as unknown as string]) {
      for (const call of [
        () => queue.skip({ ...nowhere, id }),
        () => queue.redeliver({ ...nowhere, ids: [id] }),
        () => queue.discard({ ...nowhere, ids: [id] }),
        () => queue.editDeadLetter({ ...nowhere, id, change: {} }),
        () => queue.deadLetters({ topic: "nowhere", group: "billing", after: id }),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: "INVALID_ID" });
      }
    }
    const somewhere = { topic: "nowhere", group: "billing" };
    const wrong: Record<string, () => Promise<unknown>> = {
      groups: () => queue.groups({ topic: "nowhere", grup: "g" } as never),
      countUpTo: () => queue.groups({ topic: "nowhere", countUpTo: 1.5 }),
      lagUpTo: () => queue.groups({ topic: "nowhere", lagUpTo: 0 }),
      pause: () => queue.pause({ ...nowhere, force: true } as never),
      resume: () => queue.resume({ ...somewhere, force: true } as never),
      skip: () => queue.skip({ ...nowhere, id: "1", ids: ["1"] } as never),
      deadLetters: () => queue.deadLetters({ ...somewhere, states: "dead" } as never),
      limit: () => queue.deadLetters({ ...somewhere, limit: "5" as never }),
      redeliver: () => queue.redeliver({ ...somewhere, ids: ["1"] } as never),
      ids: () => queue.redeliver({ ...nowhere, ids: "1" as never }),
      // It is about dead letters only.
      discard: () => queue.discard({ ...nowhere, all: true, state: "waiting" } as never),
      editDeadLetter: () => queue.editDeadLetter({ ...nowhere, id: "1", chnge: {} } as never),
      change: () => queue.editDeadLetter({ ...nowhere, id: "1", change: { bdy: 1 } } as never),
      rewind: () => queue.rewind({ ...nowhere, to: "end", dry: true } as never),
      undoRewind: () => queue.undoRewind({ ...nowhere, to: "end" } as never),
      partitions: () => queue.rewind({ ...nowhere, to: "end", partitions: [0.5] }),
      back: () => queue.rewind({ ...nowhere, to: { back: 0 } }),
      verify: () => queue.verify({ topic: "nowhere", chunk: 1 } as never),
      timeLimitMs: () => queue.verify({ topic: "nowhere", timeLimitMs: 0.5 }),
      applyRetention: () => queue.applyRetention({ topik: "nowhere" } as never),
      dropMonth: () => queue.dropMonth({ topic: "nowhere", month: 202601.5, author: "a", reason: "b" }),
      createTopic: () => queue.createTopic({ topic: "nowhere", retentionMonths: "2" as never }),
      tail: () =>
        queue
          .tail({ topic: "nowhere", form: "start" } as never)
          [Symbol.asyncIterator]()
          .next(),
    };
    for (const [name, call] of Object.entries(wrong)) {
      const code = await call().then(
        () => "none",
        (error: unknown) => (error as { code?: unknown }).code,
      );
      expect([name, code]).toEqual([name, "CONFIGURATION"]);
    }
    await expect(queue.applyRetention({ topic: "other" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    await expect(queue.groups({ topic: "other" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    for (const call of [
      () => queue.groups({ topic: "orders", group: "nobody" }),
      () => queue.pause({ ...BY, group: "nobody" }),
      () => queue.resume({ topic: "orders", group: "nobody" }),
      () => queue.skip({ ...BY, group: "nobody", id: "1" }),
      () => queue.deadLetters({ topic: "orders", group: "nobody" }),
      () => queue.redeliver({ ...BY, group: "nobody", all: true }),
      () => queue.discard({ ...BY, group: "nobody", all: true }),
      () => queue.editDeadLetter({ ...BY, group: "nobody", id: "1", change: {} }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "UNKNOWN_GROUP" });
    }
    await expect(queue.pause({ ...nowhere, reason: " " })).rejects.toMatchObject({ code: "CONFIGURATION" });
  });
});
