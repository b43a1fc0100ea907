/**
 * What a look at a message queue costs, with unread messages and dead letters: the rows that the
 * server examines for each statement.
 */
import { createMetricsRegistry, type Database, migrate } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { createQueue, type Queue } from "rowpost/queue";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { createEvaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS } from "../src/alerts/rules.ts";
import { type CostLog, countedConnect } from "./read-costs.ts";

const log: CostLog = vi.hoisted(() => ({ costs: [], plans: false }));

vi.mock(import("../../rowpost/src/databases/sql/sql-database.ts"), async (original) => measured(await original()));

/** The real connections of the real databases; what runs on them is measured there. */
function measured<T extends typeof import("../../rowpost/src/databases/sql/sql-database.ts")>(real: T): T {
  const purposes = ["tool", "relay"];
  const createSqlDatabase: T["createSqlDatabase"] = (parts) =>
    real.createSqlDatabase({ ...parts, connect: countedConnect(parts.connect, log, purposes) });
  return { ...real, createSqlDatabase };
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const TOPICS = ["a", "b", "c", "d", "orders"];
const PARTITIONS = 64;
const DEAD = 1_500;

/**
 * Rows of one statement, with what ends a range; catalogs are the server's own. MariaDB counts what
 * it puts into a derived table once more, PostgreSQL walks the counters of all topics.
 */
const MOST: Readonly<Record<string, number>> = {
  countMessages: 6,
  firstMessage: 3,
  countRedeliveries: 2_004,
  pageRedeliveries: 3,
  readTopics: TOPICS.length * (PARTITIONS + 8),
  readGroups: 6 * PARTITIONS,
};

describeWithService(["mariadb", "postgres"], "a look at the queue", ({ name }) => {
  let database: Database;
  let queue: Queue;
  let drop: () => Promise<void>;

  beforeEach(async () => {
    const made = await createTestDatabase(name);
    drop = () => made.drop();
    database = name === "postgres" ? postgres({ url: made.url }) : mysql({ url: made.url });
    queue = createQueue({ database });
    await migrate(database, { layout: database.defaultLayout });
    await queue.migrate();
    for (const topic of TOPICS) await queue.createTopic({ topic, partitions: PARTITIONS });
  });

  afterEach(async () => {
    await queue.close();
    await database.close();
    await drop();
  });

  async function append(count: number): Promise<void> {
    const messages = Array.from({ length: count }, (_, body) => ({ topic: "orders", body, orderingKey: "one" }));
    for (let at = 0; at < count; at += 500) await queue.append(messages.slice(at, at + 500));
  }

  async function joined(topic: string, handler: () => unknown): Promise<void> {
    const retry = { maxAttempts: 1 };
    const consumer = await queue.consume({ topic, group: "billing", handler, retry, logger: "silent" });
    const isDone = async () => (await queue.groups({ topic }))[0]?.lag.count === 0;
    await vi.waitUntil(isDone, { timeout: 120_000 });
    await consumer.stop();
  }

  test("reads a bounded number of rows, once a minute", async () => {
    await append(DEAD);
    for (const topic of TOPICS)
      await joined(topic, () => {
        throw new Error("no stock");
      });
    await append(3_000);
    let nowMs = 0;
    const { "queue-dead": dead, "queue-lag": lag } = RULE_DEFAULTS;
    const evaluator = createEvaluator({
      name: "main",
      database,
      layout: database.defaultLayout,
      logger: SILENT,
      channels: [],
      rules: { "queue-dead": dead, "queue-lag": lag },
      metrics: createMetricsRegistry(),
      monotonicMs: () => nowMs,
    });
    for (let look = 0; look < 2; look += 1) {
      log.costs.length = 0;
      nowMs += 60_000;
      const state = await evaluator.turn();
      const queued = log.costs.filter((cost) => cost.name in MOST);
      expect(queued.filter(({ name: of, rows }) => (rows ?? 0) > (MOST[of] ?? 0))).toEqual([]);
      const counted = queued.filter((cost) => cost.name === "countRedeliveries");
      expect(counted).toHaveLength(TOPICS.length * PARTITIONS);
      expect(state?.alerts["queue-dead|orders/billing"]?.facts).toMatchObject({ dead: 1_001, more: 1 });
    }
    // Between two of them it costs nothing.
    log.costs.length = 0;
    nowMs += 15_000;
    await evaluator.turn();
    expect(log.costs.filter((cost) => cost.name in MOST)).toEqual([]);
    await evaluator.close();
  });
});
