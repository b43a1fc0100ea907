/** Consumers whose database fails at one point: nothing is lost, done twice or counted twice. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import type { ConsumedMessage } from "../../src/queue/index.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { DatabaseUnavailableError } from "../../src/runtime/errors.ts";
import { until } from "../until.ts";
import { openFaultyQueue } from "./faults.ts";
import { gate, numbers } from "./members.ts";
import { describeOnEach } from "./places.ts";

const SHORT = { baseMs: 1, maxMs: 1 };
/** Pauses after a failure are none of these tests. */
const hasty = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
};

describeOnEach("a consumer whose database fails", (make, { isServer }) => {
  let opened: Awaited<ReturnType<typeof openFaultyQueue>>;

  beforeEach(async () => {
    opened = await openFaultyQueue(make, { partitions: 1, usual: { clock: hasty, retry: SHORT } });
  });
  afterEach(() => opened.close());

  const recordsOf = async (id: string) =>
    await opened.place.query(
      `SELECT attempt, result, messages FROM orders_message_info_consumption_${queueMonth(id)} ORDER BY message_id, attempt`,
    );
  const countOf = async (table: string) =>
    Number((await opened.place.query(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.["n"]);
  const nextId = async (group = "billing") => {
    const store = opened.database.queue.store();
    const consumption = store.consumption({ topic: "orders", group }, { lockWaitTimeoutMs: 1_000 });
    const [progress] = await consumption.progress([0]);
    await consumption.close();
    await store.close();
    return BigInt(progress?.nextId ?? 0);
  };
  const insertEffect = () =>
    `INSERT INTO effects (body) VALUES (${opened.place.address.kind === "postgres" ? "$1" : "?"})`;
  const effects = async () =>
    (await opened.place.query("SELECT body FROM effects ORDER BY body")).map(({ body }) => Number(body));

  it("reads again what it could not take in", async () => {
    let failures = 0;
    opened.faults.heldUp = async (real, ...args) => {
      await real(...args);
      failures += 1;
      if (failures <= 2) throw new DatabaseUnavailableError("no answer");
      return await real(...args);
    };
    const seen: unknown[] = [];
    await opened.members.start({ onFailed: "block", handler: ({ body }) => void seen.push(body) });
    await opened.queue.append(numbers(3, { orderingKey: "k" }));
    await until(() => failures > 2);
    await opened.queue.append([{ topic: "orders", body: 3, orderingKey: "k" }]);
    await until(() => seen.includes(3));
    expect(seen).toEqual([0, 1, 2, 3]);
  });

  it("does not repeat the effects of a transaction whose COMMIT got no answer", async () => {
    await opened.place.query("CREATE TABLE effects (body INTEGER NOT NULL)");
    const lost = new Set<string>();
    let handled = "";
    // Of the first transaction with new messages, and of the first with a redelivery.
    opened.faults.transaction = async (real) => {
      const result = await real();
      if (lost.has(handled)) return result;
      lost.add(handled);
      throw new DatabaseUnavailableError("COMMIT got no answer");
    };
    await opened.queue.append(numbers(3));
    await opened.members.start({
      transactional: true,
      handler: async ({ body, attempt }, { tx }) => {
        handled = attempt > 1 ? "again" : "new";
        await tx.query(insertEffect(), [body]);
        if (body === 1 && attempt === 1) throw new Error("not yet");
      },
    });
    await opened.queue.append([{ topic: "orders", body: 3 }]);
    await until(async () => (await countOf("effects")) >= 4 && (await countOf("message_redelivery")) === 0);
    await opened.members.stopAll();
    expect(lost).toEqual(new Set(["new", "again"]));
    expect(await effects()).toEqual([0, 1, 2, 3]);
  });

  it("counts no attempt while no transaction can begin, nor for a few that broke", async () => {
    let begun = 0;
    opened.faults.transaction = async (real) => {
      begun += 1;
      if (begun <= 20) throw new DatabaseUnavailableError("connect ECONNREFUSED");
      if (begun > 24) return await real();
      await real();
      throw new Error("unreachable");
    };
    const attempts: number[] = [];
    await opened.members.start({
      transactional: true,
      retry: { maxAttempts: 1 },
      handler: ({ attempt }, { tx }) => {
        attempts.push(attempt);
        if (begun <= 24) return tx.query("ROLLBACK").catch(() => undefined);
        return undefined;
      },
    });
    const [id = ""] = await opened.queue.append(numbers(1));
    await until(async () => (await recordsOf(id)).length > 0);
    await opened.members.stopAll();
    expect(attempts).toEqual([1, 1, 1, 1, 1]);
    expect((await recordsOf(id)).map(({ attempt, result }) => [Number(attempt), Number(result)])).toEqual([[1, 0]]);
    expect(await countOf("message_redelivery")).toBe(0);
  });

  it("gives up a message whose transaction breaks each time, and goes on", async () => {
    await opened.place.query("CREATE TABLE effects (body INTEGER NOT NULL)");
    await opened.members.start({
      transactional: true,
      retry: { maxAttempts: 2, ...SHORT },
      handler: async ({ body }, { tx }) => {
        await tx.query(insertEffect(), [body]);
        if (body === 1) await tx.query("ROLLBACK");
      },
    });
    const [id = ""] = await opened.queue.append(numbers(4));
    await until(async () => (await effects()).length === 3 && (await recordsOf(id)).length === 5);
    expect(await effects()).toEqual([0, 2, 3]);
    const results = (await recordsOf(id)).map(({ attempt, result }) => [Number(attempt), Number(result)]);
    expect(results).toEqual([
      [1, 0],
      [1, 1],
      [2, 2],
      [1, 0],
      [1, 0],
    ]);
  });

  it("keeps every message in its records where a settle got no answer (records: batch)", async () => {
    const unanswered = gate();
    let settles = 0;
    opened.faults.settle = async (real, ...args) => {
      const result = await real(...args);
      settles += 1;
      if (settles > 1) return result;
      unanswered.open();
      throw new DatabaseUnavailableError("no answer");
    };
    const seen: unknown[] = [];
    await opened.members.start({
      records: "batch",
      handler: async ({ body }) => {
        seen.push(body);
        if (body === 2) await unanswered.opened;
      },
    });
    const ids = await opened.queue.append(numbers(3));
    await until(async () => (await nextId()) > BigInt(ids[2] as string));
    await opened.members.stopAll();
    const records = await recordsOf(ids[0] as string);
    expect(records.reduce((sum, { messages }) => sum + Number(messages), 0)).toBe(3);
    expect(seen).toEqual([0, 1, 2]);
  });

  it("keeps a partition that it got again when a late settle is fenced out", async () => {
    const late = gate();
    const settled = gate();
    const release = gate();
    let settles = 0;
    opened.faults.settle = async (real, ...args) => {
      settles += 1;
      if (settles > 1) return await real(...args);
      await late.opened;
      const isOurs = await real(...args);
      expect(isOurs).toBe(false);
      setImmediate(settled.open);
      return isOurs;
    };
    const seen: { readonly message: ConsumedMessage; readonly signal: AbortSignal }[] = [];
    await opened.members.start({
      handler: async (message, { signal }) => {
        seen.push({ message, signal });
        if (message.body === 9) await release.opened;
      },
    });
    await opened.queue.append(numbers(1));
    await until(() => settles === 1);
    await opened.place.query("UPDATE message_consumption SET epoch = epoch + 1");
    await until(() => seen.length === 2);
    await opened.queue.append([{ topic: "orders", body: 9 }]);
    await until(() => seen.length === 3);
    late.open();
    await settled.opened;
    expect(seen.map(({ message }) => message.body)).toEqual([0, 0, 9]);
    expect(seen[2]?.signal.aborted).toBe(false);
    release.open();
    await opened.members.stopAll();
    expect(seen).toHaveLength(3);
  });

  it.each([false, true])("goes on when a month is dropped under it (transactional: %s)", async (transactional) => {
    const running = gate();
    const release = gate();
    const seen: unknown[] = [];
    await opened.members.start({
      transactional,
      handler: async ({ body }) => {
        seen.push(body);
        if (body !== 0 || seen.length > 1) return;
        running.open();
        await release.opened;
      },
    });
    const [id = ""] = await opened.queue.append(numbers(1));
    await running.opened;
    // SQLite has one writer: there the transaction of the handler would be waited for.
    const dropping = opened.place.query(`DROP TABLE orders_message_info_consumption_${queueMonth(id)}`);
    if (!isServer && transactional) release.open();
    await dropping;
    release.open();
    await until(async () => (await nextId()) > BigInt(id));
    await opened.members.stopAll();
  });

  it("delivers other redeliveries while one hangs", async () => {
    const hanging = gate();
    const release = gate();
    const seen: string[] = [];
    await opened.members.start({
      handler: async ({ body, attempt }) => {
        if (attempt === 1) throw new Error("not yet");
        hanging.open();
        if (body === 0) await release.opened;
        seen.push(`${String(body)} ${attempt}`);
      },
    });
    await opened.queue.append(numbers(1));
    await hanging.opened;
    await opened.queue.append([{ topic: "orders", body: 1 }]);
    await until(() => seen.length === 1);
    expect(seen).toEqual(["1 2"]);
    release.open();
    await until(() => seen.length === 2);
  });

  it("goes on when its topic is removed and made again", async () => {
    const seen: unknown[] = [];
    const member = await opened.members.start({ handler: ({ body }) => void seen.push(body) });
    await opened.queue.append(numbers(1));
    await until(() => seen.length === 1);
    await opened.queue.deleteTopic("orders");
    await until(() => member.partitions.length === 0);
    await opened.queue.createTopic({ topic: "orders", partitions: 1 });
    await opened.queue.append([{ topic: "orders", body: "new" }]);
    await until(() => seen.includes("new"));
    expect(seen).toEqual([0, "new"]);
  });

  it("begins at an id of 19 digits", async () => {
    const from = { id: "9000000000000000000" };
    await opened.members.start({ group: "far", from, handler: () => undefined });
    expect(await nextId("far")).toBe(BigInt(from.id));
    const wrong = opened.members.start({ from: { id: "99999999999999999999" }, handler: () => undefined });
    await expect(wrong).rejects.toMatchObject({ code: "INVALID_ID" });
  });
});
