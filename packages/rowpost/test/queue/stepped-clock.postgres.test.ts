/**
 * The clock of the database is set forward and back by hours while members consume. Nobody may set
 * that of the test's server; but in a database of its own every function that tells the time can
 * stand in front of the server's, for all sessions at once.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { postgres } from "../../src/databases/postgres/index.ts";
import { monthAfter, queueMonth } from "../../src/message/queue-id.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { until } from "../until.ts";
import { createMembers, type Members, numbers } from "./members.ts";

const CLOCKS = ["clock_timestamp", "statement_timestamp", "transaction_timestamp", "now"];

describeWithService("postgres", "a database clock that is set by hours", () => {
  let made: TestDatabase;
  let queue: Queue;
  let members: Members;
  let query: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  const closing: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    made = await createTestDatabase("postgres");
    const hand = await postgres({ url: made.url }).connect({ purpose: "tool" });
    query = async (text) => (await hand.run({ name: "by hand", text, params: [] })).rows;
    await query("CREATE SCHEMA stepped");
    await query("CREATE TABLE stepped.clock (step interval NOT NULL)");
    await query("INSERT INTO stepped.clock VALUES ('0')");
    for (const name of CLOCKS) {
      await query(
        `CREATE FUNCTION stepped.${name}() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT pg_catalog.${name}() + (SELECT step FROM stepped.clock)'`,
      );
    }
    await query(`ALTER DATABASE ${made.name} SET search_path = public, stepped, pg_catalog`);
    const database = postgres({ url: made.url });
    queue = createQueue({ database });
    members = createMembers(queue);
    closing.push(
      () => members.stopAll(),
      () => queue.close(),
      () => database.close(),
      () => hand.close(),
      () => made.drop(),
    );
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** Sets it, and waits until every member has reported itself by the new time. */
  async function step(hours: number): Promise<void> {
    await query(`UPDATE stepped.clock SET step = '${hours} hours'`);
    await until(async () => {
      const [row] = await query(
        `SELECT count(*) AS n FROM message_consumer WHERE abs(extract(epoch FROM seen_at - pg_catalog.now()) - ${hours * 3_600}) < 60`,
      );
      return Number(row?.["n"]) === 2;
    });
  }

  it("loses, repeats and overtakes nothing, and takes no partition away", { timeout: 120_000 }, async () => {
    const seen: string[] = [];
    const failedOnce = new Set<string>();
    const again: string[] = [];
    for (let member = 0; member < 2; member += 1) {
      await members.start({
        retry: { baseMs: 1, maxMs: 1 },
        handler({ id, key, attempt }) {
          if (attempt === 1) seen.push(id);
          else again.push(id);
          if (key !== "3" || failedOnce.has(id)) return;
          failedOnce.add(id);
          throw new Error("not yet");
        },
      });
    }
    await until(async () => (await query("SELECT 1 FROM message_consumer")).length === 2);
    // The partition is the share of the first of them, by name.
    const shared = "SELECT 1 FROM message_consumption WHERE owner = (SELECT min(owner) FROM message_consumer)";
    await until(async () => (await query(shared)).length === 1);
    const [before] = await query("SELECT owner, epoch FROM message_consumption");
    const ids: string[] = [];
    for (const hours of [0, 5, -5, 0]) {
      await step(hours);
      ids.push(...(await queue.append(numbers(20))));
      await until(() => seen.length === ids.length);
      await until(() => again.length === failedOnce.size && failedOnce.size === ids.length / 20);
      await until(async () => {
        const [row] = await query("SELECT next_message_id AS next FROM message_consumption");
        return BigInt(String(row?.["next"])) > BigInt(ids.at(-1) ?? 0);
      });
    }
    expect(seen).toEqual(ids);
    expect(ids).toEqual([...ids].sort((left, right) => (BigInt(left) < BigInt(right) ? -1 : 1)));
    expect(again).toEqual([...failedOnce]);
    expect(await query("SELECT owner, epoch FROM message_consumption")).toEqual([before]);
    await until(async () => (await query("SELECT 1 FROM message_redelivery")).length === 0);
  });

  it("goes over the border of a month during traffic, whose next tables nobody has made", {
    timeout: 120_000,
  }, async () => {
    const seen: string[] = [];
    await members.start({ handler: ({ id }) => void seen.push(id), concurrency: 1 });
    const [before] = await query("SELECT to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYYMM') AS month");
    const first = Number(before?.["month"]);
    for (const table of ["info", "info_consumption"]) {
      await query(`DROP TABLE orders_message_${table}_${monthAfter(first)}`);
    }
    await query(
      `UPDATE stepped.clock SET step = (date_trunc('month', pg_catalog.now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC' - pg_catalog.now() - interval '1 second'`,
    );
    const ids: string[] = [];
    const counts = new Map<number, number>();
    while ((counts.get(monthAfter(first)) ?? 0) < 100) {
      // Several at once, of one partition: their ids have one order.
      const calls = await Promise.all([1, 2, 3, 4].map(() => queue.append(numbers(5))));
      const fresh = calls.flat();
      for (const id of fresh) counts.set(queueMonth(id), (counts.get(queueMonth(id)) ?? 0) + 1);
      ids.push(...fresh);
    }
    await until(() => seen.length >= ids.length);
    expect(new Set(counts.keys())).toEqual(new Set([first, monthAfter(first)]));
    expect(seen).toEqual([...ids].sort((left, right) => (BigInt(left) < BigInt(right) ? -1 : 1)));
    for (const [month, count] of counts) {
      expect(await query(`SELECT 1 FROM orders_message_info_${month}`)).toHaveLength(count);
    }
  });
});
