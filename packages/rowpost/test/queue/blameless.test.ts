/** `transactional`: whose fault it is that a transaction failed, and what that does to messages. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { Transaction } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { until } from "../until.ts";
import { gate, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace, serverPlace } from "./places.ts";

/** Pauses are none of these tests. */
const hasty = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 5), signal),
};
const USUAL = { transactional: true, clock: hasty, retry: { maxAttempts: 2, baseMs: 0 } };

let shop: OpenQueue;

async function open(make: () => Promise<QueuePlace>, partitions: number): Promise<void> {
  shop = await openQueue(make, { partitions, usual: USUAL });
  await shop.place.query("CREATE TABLE effects (body INTEGER PRIMARY KEY)");
}

/** Records of the month of this message, in order: `key attempt result`. */
async function records(id: string): Promise<string[]> {
  const rows = await shop.place.query(
    `SELECT message_key, attempt, result FROM orders_message_info_consumption_${queueMonth(id)}
     ORDER BY message_id, attempt`,
  );
  return rows.map((row) => [row["message_key"], row["attempt"], row["result"]].join(" "));
}

const effects = async () =>
  (await shop.place.query("SELECT body FROM effects ORDER BY body")).map(({ body }) => Number(body));
const reasons = async () =>
  (await shop.place.query("SELECT fail_reason FROM message_redelivery")).map((row) => String(row["fail_reason"]));
const put = (tx: Transaction, body: unknown) => tx.query(`INSERT INTO effects (body) VALUES (${String(body)})`);
const caught = async (work: Promise<unknown>): Promise<unknown> => await work.catch((error: unknown) => error);

/** A logger that keeps what it is told, and how often of each message. */
function listening() {
  const times: unknown[] = [];
  const warn = (line: string, fields?: Readonly<Record<string, unknown>>): void => {
    if (line.startsWith("another transaction was in the way")) times.push(fields?.["times"]);
  };
  return { times, logger: { debug: () => undefined, info: () => undefined, warn, error: warn } };
}

describeWithService("postgres", "a handler that goes on after a statement of it failed", (service) => {
  beforeEach(() => open(() => serverPlace(service.name), 1));
  afterEach(() => shop.close());

  it("has failed, says why, and disturbs nobody else", async () => {
    await shop.place.query("INSERT INTO effects (body) VALUES (1)");
    const calls: string[] = [];
    const [id = ""] = await shop.queue.append(numbers(4));
    await shop.members.start({
      async handler({ key, body, attempt }, { tx }) {
        calls.push(`${key} ${attempt}`);
        await caught(put(tx, body));
        await caught(tx.query("SELECT 1"));
      },
    });
    await until(async () => (await records(id)).length === 5);
    expect(calls).toEqual(["0 1", "1 1", "2 1", "3 1", "1 2"]);
    expect(await records(id)).toEqual(["0 1 0", "1 1 1", "1 2 2", "2 1 0", "3 1 0"]);
    expect(await effects()).toEqual([0, 1, 2, 3]);
    expect(await reasons()).toEqual([expect.stringMatching(/23505: duplicate key.*ON CONFLICT DO NOTHING.*SAVEPOINT/)]);
  });

  it("names the failure that it did not take back", async () => {
    const [id = ""] = await shop.queue.append(numbers(2));
    await shop.members.start({
      async handler({ body }, { tx }) {
        await put(tx, body);
        await tx.query("SAVEPOINT mine");
        await caught(put(tx, body));
        await tx.query("ROLLBACK TO SAVEPOINT mine");
        if (body === 1) await caught(tx.query("SELECT 1 / 0"));
      },
    });
    await until(async () => (await records(id)).length === 3);
    expect(await records(id)).toEqual(["0 1 0", "1 1 1", "1 2 2"]);
    expect(await reasons()).toEqual([expect.stringContaining("22012: division by zero")]);
  });
});

describeOnEach("a transaction that is in the way of a handler's", (make) => {
  beforeEach(async () => {
    await open(make, 1);
    await shop.place.query("CREATE TABLE accounts (id INTEGER PRIMARY KEY, n INTEGER)");
    await shop.place.query("INSERT INTO accounts VALUES (0, 0)");
  });
  afterEach(() => shop.close());

  const isServer = (): boolean => shop.place.address.kind !== "sqlite";

  /** Somebody has the account, until the end of `work`. */
  async function whileHeld(work: () => Promise<void>): Promise<void> {
    if (!isServer()) return await work();
    await shop.database.transaction(async (tx) => {
      await tx.query("SELECT n FROM accounts WHERE id = 0 FOR UPDATE");
      await work();
    });
  }

  /** Fails while it is held; on SQLite somebody else would have the whole file. */
  async function take(tx: Transaction, isHeld: boolean): Promise<void> {
    if (isServer()) await tx.query("SELECT n FROM accounts WHERE id = 0 FOR UPDATE NOWAIT");
    else if (isHeld) throw Object.assign(new Error("database is locked"), { errcode: 5 });
  }

  it.each(["as it is", "with a cause"])("counts for nothing, and keeps the order: the error thrown %s", async (how) => {
    const calls: string[] = [];
    const freed = gate();
    const { logger, times } = listening();
    let isHeld = true;
    const [id = ""] = await shop.queue.append(numbers(4));
    const holding = whileHeld(async () => {
      await shop.members.start({
        logger,
        async handler({ key, body, attempt }, { tx }) {
          calls.push(`${key} ${attempt}`);
          await put(tx, body);
          if (key !== "2") return;
          // What had been handled before it is not rolled back.
          if (calls.length === 12) {
            expect(await effects()).toEqual([0, 1]);
            isHeld = false;
            freed.open();
            await holding;
          }
          if (how === "as it is") return await take(tx, isHeld);
          await tx.query("SAVEPOINT mine");
          const error = await caught(take(tx, isHeld));
          await tx.query("ROLLBACK TO SAVEPOINT mine");
          if (error === undefined) return;
          const cause = Object.assign(new Error("no", { cause: error }), { code: "NOT_CHARGED" });
          throw new Error("not charged", { cause });
        },
      });
      await freed.opened;
    });
    await until(async () => (await records(id)).length === 4);
    expect(calls).toEqual(["0 1", "1 1", ...Array.from({ length: 10 }, () => "2 1"), "3 1"]);
    expect(await records(id)).toEqual(["0 1 0", "1 1 0", "2 1 0", "3 1 0"]);
    expect(await effects()).toEqual([0, 1, 2, 3]);
    expect(times).toEqual([1, 2, 4, 8]);
  });

  it("counts in the end, so that its partition goes on", async () => {
    const calls: string[] = [];
    const { logger, times } = listening();
    const [id = ""] = await shop.queue.append(numbers(2));
    await whileHeld(async () => {
      await shop.members.start({
        logger,
        retry: { maxAttempts: 1 },
        async handler({ key }, { tx }) {
          calls.push(key as string);
          if (key === "0") await take(tx, true);
        },
      });
      await until(() => calls.includes("1"));
    });
    await until(async () => (await records(id)).length === 2);
    // The first time in one transaction with the other message.
    expect(calls).toEqual([...Array.from({ length: 101 }, () => "0"), "1"]);
    expect(await records(id)).toEqual(["0 1 2", "1 1 0"]);
    expect(await reasons()).toEqual([expect.stringContaining("100 times in a row")]);
    // The log takes five of a kind in a minute.
    expect(times).toEqual([1, 2, 4, 8, 16]);
  });
});

describeWithService(["mariadb", "mysql9", "postgres"], "a deadlock of two handlers", (service) => {
  beforeEach(async () => {
    await open(() => serverPlace(service.name), 2);
    await shop.place.query("CREATE TABLE accounts (id INTEGER PRIMARY KEY, n INTEGER)");
    await shop.place.query("INSERT INTO accounts VALUES (0, 0), (1, 0)");
  });
  afterEach(() => shop.close());

  it.each(["as it is", "with a cause", "without a cause", "not at all"])(
    "counts for nothing, and keeps the order: the error thrown %s",
    { timeout: 60_000 },
    async (how) => {
      const calls: string[][] = [[], []];
      const halfway = [gate(), gate()];
      const keyed = numbers(12).map((message) => ({ ...message, orderingKey: message.key as string }));
      const ids = await shop.queue.append(keyed);
      const keysOf = [0, 1].map((partition) =>
        ids.flatMap((id, index) => (Number(BigInt(id) & 63n) === partition ? String(index) : [])),
      );
      await shop.members.start({
        async handler({ key = "", body, partition }, { tx }) {
          const add = (id: number) => tx.query(`UPDATE accounts SET n = n + 1 WHERE id = ${id}`);
          calls[partition]?.push(key);
          await put(tx, body);
          if (key !== keysOf[partition]?.[1]) return;
          try {
            await add(partition);
            halfway[partition]?.open();
            await halfway[1 - partition]?.opened;
            await add(1 - partition);
          } catch (error) {
            if (how === "as it is") throw error;
            if (how === "with a cause") throw new Error("not charged", { cause: error });
            if (how === "without a cause") throw new Error("not charged");
          }
        },
      });
      await until(async () => (await records(ids[0] ?? "")).length === 12);
      expect((await records(ids[0] ?? "")).every((line) => line.endsWith(" 1 0"))).toBe(true);
      expect(await effects()).toEqual(Array.from({ length: 12 }, (_, index) => index));
      const rows = await shop.place.query("SELECT n FROM accounts");
      expect(rows.map(({ n }) => Number(n))).toEqual([2, 2]);
      // MySQL has rolled back the first one of the victim as well, unless that was read, and so
      // committed, before the others.
      const again = calls.flat().length - 12;
      expect(service.name === "postgres" ? [1] : [1, 2]).toContain(again);
      const lasts = calls.map((each) => each.filter((key, index) => each.lastIndexOf(key) === index));
      expect(lasts).toEqual(keysOf);
    },
  );
});

describeOnEach("a handler that heeds the signal of a stop", (make) => {
  beforeEach(() => open(make, 1));
  afterEach(() => shop.close());

  it("has not failed, and is called again by the next member", { timeout: 60_000 }, async () => {
    const called = gate();
    const attempts: number[] = [];
    const [id = ""] = await shop.queue.append(numbers(1));
    await shop.members.start({
      drainTimeoutMs: 0,
      handler: (_message, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("stopped")));
          called.open();
        }),
    });
    await called.opened;
    expect(await shop.members.stopAll()).toEqual([{ drained: false }]);
    await shop.members.start({ handler: ({ attempt }) => void attempts.push(attempt) });
    await until(async () => (await records(id)).length > 0);
    expect(await records(id)).toEqual(["0 1 0"]);
    expect(attempts).toEqual([1]);
  });
});
