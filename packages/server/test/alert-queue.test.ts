/** Rules of the message queue and the doctor's findings over real databases. */
import { createMetricsRegistry, type Database, migrate } from "rowpost";
import { createQueue, type Queue } from "rowpost/queue";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createChannel } from "../src/alerts/channels/send.ts";
import { createEvaluator, type Evaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS, type Rules } from "../src/alerts/rules.ts";
import type { AlertsState } from "../src/alerts/state.ts";
import { type AlertDatabase, describeDatabases, type Hook, runSql, startHook } from "./alert-bench.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const QUEUE_RULES: Rules = {
  // Whatever is there and due is late.
  "queue-lag": { forMs: 0, overMs: 0 },
  "queue-dead": RULE_DEFAULTS["queue-dead"],
  "queue-paused": { forMs: 0 },
  "queue-tables": { forMs: 0 },
};
const BY = { topic: "orders", group: "billing", author: "wang", reason: "test" };

function cases(create: () => Promise<AlertDatabase>): void {
  let database: Database;
  let drop: () => Promise<void>;
  let hook: Hook;
  let queue: Queue;
  let only: Evaluator | undefined;
  let nowMs: number;
  let read: number;

  beforeEach(async () => {
    const made = await create();
    database = made.database;
    drop = () => made.drop();
    [hook, nowMs, read, only] = [await startHook(), 0, 0, undefined];
    await migrate(database, { layout: database.defaultLayout });
    queue = createQueue({ database });
  });

  afterEach(async () => {
    await only?.close();
    await queue.close();
    hook.close();
    await database.close();
    await drop();
  });

  function evaluate(rules: Rules): void {
    const monotonicMs = (): number => nowMs;
    const config = {
      ...({ name: "hook", type: "webhook", url: hook.url("/hook"), secret: undefined, keyword: undefined } as const),
      ...({ language: "en", from: "info" } as const),
    };
    only = createEvaluator({
      name: "main",
      database,
      layout: database.defaultLayout,
      rules,
      logger: SILENT,
      monotonicMs,
      metrics: createMetricsRegistry(),
      channels: [createChannel({ config, consoleUrl: undefined, secrets: [], monotonicMs })],
    });
  }

  /** Looks every so often; the last state. */
  async function turns(count: number, everyMs = 60_000): Promise<AlertsState | undefined> {
    let state: AlertsState | undefined;
    for (let turn = 0; turn < count; turn += 1) {
      nowMs += everyMs;
      state = await only?.turn();
    }
    return state;
  }

  /** What was told since the last call. */
  function told(): string[] {
    const fresh = hook.told.slice(read).flatMap(({ alerts }) => alerts);
    read = hook.told.length;
    return fresh;
  }

  /** Reads all that there is; what fails once is dead. */
  async function consume(handler: () => unknown): Promise<void> {
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      handler,
      logger: "silent",
      retry: { maxAttempts: 1 },
    });
    const isDone = async () => {
      const [group] = await queue.groups({ topic: "orders" });
      return group?.lag.count === 0 && group.waiting.count === 0;
    };
    await vi.waitUntil(isDone, { timeout: 60_000 });
    await consumer.stop();
  }

  test("a group that does not get on, its dead letters and its pause are told, each with its end", async () => {
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2 });
    await queue.createTopic({ topic: "stock" });
    await consume(() => undefined);
    evaluate(QUEUE_RULES);
    expect(Object.keys((await turns(2))?.alerts ?? {})).toEqual([]);
    await queue.append({ topic: "orders", body: 1 });
    await turns(3);
    expect(told()).toEqual(["firing queue-lag orders/billing"]);
    expect(hook.told[0]?.title).toMatch(/warning group billing of topic orders is \d+ (s|min) behind$/);
    expect(hook.told[0]?.text).toContain("first step: rowpost queue groups orders billing");
    await queue.pause(BY);
    await turns(4);
    expect(told()).toEqual(["resolved queue-lag orders/billing", "firing queue-paused orders/billing"]);
    await queue.resume(BY);
    await consume(() => {
      throw new Error("no stock");
    });
    await turns(4);
    expect(told().sort()).toEqual(["firing queue-dead orders/billing", "resolved queue-paused orders/billing"]);
    await queue.redeliver({ ...BY, all: true });
    await consume(() => undefined);
    await turns(4);
    expect(told()).toEqual(["resolved queue-dead orders/billing"]);
  });

  test("one who takes over tells nothing anew and knows how many were dead; topics that were deleted are forgotten", async () => {
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    await queue.append({ topic: "orders", body: 1 });
    await consume(() => {
      throw new Error("no stock");
    });
    await queue.append({ topic: "orders", body: 2 });
    evaluate(QUEUE_RULES);
    // What was dead before anybody looked is old.
    await turns(2);
    expect(told()).toEqual(["firing queue-lag orders/billing"]);
    await only?.close();
    await consume(() => {
      throw new Error("no stock");
    });
    evaluate(QUEUE_RULES);
    await turns(2);
    expect(told()).toEqual(["firing queue-dead orders/billing"]);
    await queue.deleteTopic("orders");
    expect((await turns(4))?.dead).toEqual({});
    expect(told().sort()).toEqual(["resolved queue-dead orders/billing", "resolved queue-lag orders/billing"]);
  });

  test("a database without a queue is asked for one every five minutes; a queue that comes is found", async () => {
    evaluate(QUEUE_RULES);
    expect((await turns(1))?.dead).toBeNull();
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    expect((await turns(4))?.dead).toBeNull();
    expect((await turns(1))?.dead).toEqual({});
    // Tables that are gone are no error.
    for (const topic of await queue.topics()) await queue.deleteTopic(topic.topic);
    await runSql(database, "DROP TABLE message_topic");
    expect((await turns(1))?.dead).toBeNull();
    expect(told()).toEqual([]);
  });

  test("a queue that can no longer be read is not taken for one where all is well", async () => {
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    await consume(() => undefined);
    await queue.pause(BY);
    evaluate(QUEUE_RULES);
    await turns(2);
    expect(told()).toEqual(["firing queue-paused orders/billing"]);
    await runSql(database, "ALTER TABLE message_consumption RENAME COLUMN update_time TO moved");
    await turns(12);
    expect(told()).toEqual([]);
    await runSql(database, "ALTER TABLE message_consumption RENAME COLUMN moved TO update_time");
    await queue.resume(BY);
    await turns(9);
    expect(told()).toEqual(["resolved queue-paused orders/billing"]);
  });

  test("what the doctor finds is told after ten minutes at most, stays while he does not look, and ends", async () => {
    evaluate({
      doctor: { forMs: 0, except: ["D201", "D203", "D204", "D205", "D301", "D210", "D211", "D301", "D302", "D306"] },
    });
    await turns(1, 15_000);
    expect(told()).toEqual([]);
    const [row] = await runSql(database, "SELECT table_name AS name FROM local_message_migration WHERE version = 11");
    await runSql(database, "UPDATE local_message_migration SET table_name = 'away' WHERE version = 11");
    await turns(39, 15_000);
    expect(told()).toEqual([]);
    // An alert with the tenth minute; told with the look behind it.
    await turns(2, 15_000);
    expect(told()).toEqual(["firing doctor D104"]);
    expect(hook.told[0]?.title).toMatch(/warning D104: migrations are missing: 11 /);
    expect(hook.told[0]?.text).toContain("first step: rowpost doctor");
    await runSql(
      database,
      `UPDATE local_message_migration SET table_name = '${String(row?.["name"])}' WHERE version = 11`,
    );
    await turns(38, 15_000);
    expect(told()).toEqual([]);
    await turns(9, 15_000);
    expect(told()).toEqual(["resolved doctor D104"]);
  });
}

describeDatabases("alerts of the queue", cases);
