import { silentMetrics } from "rowpost";
import { createQueue } from "rowpost/queue";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createGrantedDatabase, type GrantedDatabase, grants } from "../../rowpost/test/databases/granted-users.ts";
import { describeWithService } from "../../rowpost/test/services.ts";
import { createEvaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS } from "../src/alerts/rules.ts";
import { type Alert, NO_ALERTS } from "../src/alerts/state.ts";
import { type Hook, onlyRules, putAlerts, startHook, storedAlerts, webhookAt, writeAlerts } from "./alert-bench.ts";
import { insertMessages, startRowpost, temporaryFile } from "./command.ts";

/** Began a while ago, and was told to nobody: the first look tells it, if it still holds. */
const BEGUN: Alert = {
  ...({ rule: "failed", subject: "orders", severity: "critical", phase: "firing", facts: {} } as const),
  value: 2,
  peak: 2,
  sinceMs: 0,
  since: "2026-11-24T03:00:00.000Z",
  seenMs: 50_000,
  firedMs: 0,
  toldMs: null,
  toldSeverity: null,
};

describeWithService(["mariadb", "postgres"], "a relay with --alerts", ({ name }) => {
  let made: GrantedDatabase;
  let hook: Hook;
  let files: Awaited<ReturnType<typeof temporaryFile>>;

  beforeEach(async () => {
    [made, hook, files] = [await createGrantedDatabase(name), await startHook(), await temporaryFile()];
    const { owner } = made;
    await insertMessages(owner, { count: 2, topic: "orders", prefix: "a" });
    await made.sql("UPDATE local_message SET state = 3");
    await putAlerts(owner, { ...NO_ALERTS, clockMs: 60_000, alerts: { "failed|orders": BEGUN } });
    // In the same place, with tables that the relay has no right on.
    const queue = createQueue({ database: owner });
    await queue.migrate();
    await queue.createTopic({ topic: "events" });
    await queue.close();
  });

  afterEach(async () => {
    hook.close();
    await made.drop();
    await files.remove();
  });

  /** Until it has told; its log but for what it says as a matter of course. */
  async function told(rights: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { url } = await made.user("relay", rights);
    const alerts = writeAlerts(`${files.file}.json`, {
      rules: onlyRules({ failed: { criticalFrom: 1 }, doctor: {}, "queue-lag": {}, "queue-dead": {}, schema: {} }),
      channels: { night: webhookAt(hook.url("/night")) },
    });
    const relay = startRowpost(["relay", "--database", url, "--broker", "stdout:", "--alerts", alerts]);
    try {
      await Promise.all([hook.came("/night", 1), relay.printed("relay runs")]);
      relay.child.kill("SIGTERM");
      const { code, stderr } = await relay.finished;
      expect(code).toBe(0);
      const lines = stderr.split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line)).filter(({ level }) => level !== "info");
    } finally {
      relay.child.kill("SIGKILL");
    }
  }

  test("evaluates and tells under the relay's rights; a queue that it may not read is one line", async () => {
    const problems = await told(grants(made.engine, "relay"));
    // MariaDB shows nobody a table on which he has no right.
    const isSeen = made.engine === "postgres";
    expect(problems).toMatchObject(isSeen ? [{ level: "warn", msg: "the message queue cannot be looked at" }] : []);
    expect(hook.told.map(({ alerts }) => alerts)).toEqual([["firing failed orders"]]);
    const { alerts, dead } = await storedAlerts(made.owner);
    expect(dead).toBeNull();
    // What the test servers' settings are, and nothing about tables or rights.
    expect(Object.keys(alerts).filter((key) => !/^doctor\|D[23]/.test(key))).toEqual(["failed|orders"]);
  });

  test("says so once, however often it looks, and makes no alert of it", async () => {
    const { database } = await made.user("relay", grants(made.engine, "relay"));
    const lines: string[] = [];
    const say = (text: string): void => void lines.push(text);
    let nowMs = 0;
    const evaluator = createEvaluator({
      name: "main",
      database,
      layout: database.defaultLayout,
      channels: [],
      metrics: silentMetrics,
      rules: {
        "queue-lag": RULE_DEFAULTS["queue-lag"],
        schema: RULE_DEFAULTS.schema,
        database: RULE_DEFAULTS.database,
      },
      logger: { debug: say, info: say, warn: say, error: say },
      monotonicMs: () => nowMs,
    });
    for (let look = 0; look < 20; look += 1) {
      nowMs += 300_000;
      const { alerts } = (await evaluator.turn()) ?? NO_ALERTS;
      expect(Object.keys(alerts).filter((key) => key !== "failed|orders")).toEqual([]);
    }
    await evaluator.close();
    expect(lines).toEqual(made.engine === "postgres" ? ["the message queue cannot be looked at"] : []);
  });

  test("with a right to read it, the queue is looked at too", async () => {
    const tables = ["message_topic", "message_topic_partition", "message_consumption", "message_consumer"];
    const read = [...tables, "message_group", "message_redelivery"].map((table) => `GRANT SELECT ON ${table} TO relay`);
    expect(await told([...grants(made.engine, "relay"), ...read])).toEqual([]);
    // Read, and there are no dead letters.
    expect((await storedAlerts(made.owner)).dead).toEqual({});
  });
});
