/**
 * Failed messages of many topics: each topic is told by itself, up to 10,000 messages; beyond that
 * what is not known says so.
 */
import { createMetricsRegistry, type Database, migrate } from "rowpost";
import { mariadb } from "rowpost/mariadb";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { numbersTo } from "../../rowpost/test/databases/plans.ts";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { createEvaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS } from "../src/alerts/rules.ts";
import { runSql } from "./alert-bench.ts";
import { temporaryFile } from "./command.ts";
import { type ConsoleBench, openConsole } from "./console.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

describe("failed messages of many topics on sqlite", () => {
  cases(async () => {
    const place = await temporaryFile();
    return { database: sqlite({ file: place.file }), drop: () => place.remove() };
  });
});
describeWithService(["mariadb", "mysql8", "mysql9", "postgres"], "failed messages of many topics", ({ name }) => {
  cases(async () => {
    const made = await createTestDatabase(name);
    const open = { mariadb, mysql8: mysql, mysql9: mysql, postgres }[name as "mariadb"];
    return { database: open({ url: made.url }), drop: () => made.drop() };
  });
});

function cases(create: () => Promise<{ readonly database: Database; drop(): Promise<void> }>): void {
  let database: Database;
  let bench: ConsoleBench;
  let drop: () => Promise<void>;
  let puts: number;

  beforeEach(async () => {
    const made = await create();
    ({ database } = made);
    drop = () => made.drop();
    puts = 0;
    await migrate(database, { layout: database.defaultLayout });
    bench = await openConsole(database);
  });
  afterEach(async () => {
    await bench.close();
    await drop();
  });

  /** `next`: the day of the next slow retry; those that fail later have a later one. */
  async function fail(topic: string, count: number, next?: number): Promise<void> {
    puts += 1;
    const { dialect } = database;
    const key = dialect === "mysql" ? `CONCAT('${puts}-', n)` : `'${puts}-' || n`;
    const at = next === undefined ? "NULL" : `'2030-01-${String(next).padStart(2, "0")} 00:00:00'`;
    await runSql(
      database,
      `INSERT INTO local_message (message_type, message_key, topic, message_body, state, next_retry_at)
SELECT 't', ${key}, '${topic}', '{}', 3, ${dialect === "postgres" ? `CAST(${at} AS timestamptz)` : at} FROM ${numbersTo(dialect, count)}`,
    );
  }

  async function seenBy(token: string) {
    const fresh = bench.another();
    const { json } = await bench.ask("overview", { token }, fresh);
    const pulse = await bench.ask("pulse", { token }, fresh);
    await fresh.close();
    const of = (topic: { readonly topic: string; readonly states: readonly { readonly state: string }[] }) => [
      topic.topic,
      topic.states.find(({ state }) => state === "failed"),
    ];
    const [{ problems }] = (pulse.json as { sources: [{ problems: number }] }).sources;
    const topics = json["topics"] as Parameters<typeof of>[0][];
    const told = json["problems"] as { readonly kind: string; readonly subject: string; readonly count?: object }[];
    return {
      topics: Object.fromEntries(topics.map(of)),
      failed: told.filter(({ kind }) => kind === "failed").map(({ count, subject }) => [subject, count]),
      states: json["states"],
      problems,
      all: told.length,
    };
  }

  test("up to 10,000 each topic's number is exact, for whoever may see only some of them too", async () => {
    await fail("theirs", 1_220);
    await fail("theirs.later", 5_000, 2);
    await fail("mine.a", 400);
    await fail("mine.b", 3, 1);
    const count = (value: number) => ({ state: "failed", count: { value, relation: "eq" } });
    const all = await seenBy(bench.tokens.reader);
    expect(all.topics).toEqual({
      theirs: count(1_220),
      "theirs.later": count(5_000),
      "mine.a": count(400),
      "mine.b": count(3),
    });
    const limited = await seenBy(bench.tokens.limited);
    expect(limited.failed).toEqual([
      ["mine.a", { value: 400, relation: "eq" }],
      ["mine.b", { value: 3, relation: "eq" }],
    ]);
    expect(limited.states).toContainEqual(count(403));
    expect(limited.problems).toBe(limited.all);
  });

  test("beyond, a topic that is not seen is not known: never 0, and never well", async () => {
    await fail("mine.a", 40, 1);
    await fail("theirs", 10_500, 2);
    const unknown = { value: 0, relation: "gte" };
    const limited = await seenBy(bench.tokens.limited);
    expect(limited.failed).toEqual([["", unknown]]);
    expect(limited.states).toContainEqual({ state: "failed", count: unknown });
    const all = await seenBy(bench.tokens.reader);
    expect(all.failed).toEqual([
      ["theirs", { value: 10_000, relation: "gte" }],
      ["", { value: 10_000, relation: "gte" }],
    ]);
  });

  test("a topic of whose state only a part is looked at, and that it does not show, has no 0 there", async () => {
    await fail("theirs", 400);
    await runSql(database, "UPDATE local_message SET state = 5");
    await fail("mine.a", 1);
    const { topics } = await seenBy(bench.tokens.limited);
    expect(Object.keys(topics)).toEqual(["mine.a"]);
    const { json } = await bench.ask("topics", { token: bench.tokens.limited });
    expect(json["items"]).toMatchObject([
      { states: expect.arrayContaining([{ state: "suspended", count: { value: 0, relation: "gte" } }]) },
    ]);
  });

  test("alerts judge each topic by itself, beside one with 5,000 and with 12,000", async () => {
    let nowMs = 0;
    const evaluator = createEvaluator({
      name: "main",
      database,
      layout: database.defaultLayout,
      logger: SILENT,
      channels: [],
      rules: { failed: RULE_DEFAULTS.failed },
      metrics: createMetricsRegistry(),
      monotonicMs: () => nowMs,
    });
    const fires = async (): Promise<string[]> => {
      nowMs += 15_000;
      const state = await evaluator.turn();
      const firing = Object.values(state?.alerts ?? {}).filter(({ phase }) => phase === "firing");
      return firing.map(({ severity, subject, value }) => `${subject} ${severity} ${value}`).sort();
    };
    await fail("big", 5_000, 1);
    await fail("old", 150, 1);
    expect(await fires()).toEqual(["big critical 5000", "old critical 150"]);
    await fail("small", 50, 2);
    expect(await fires()).toEqual(["big critical 5000", "old critical 150", "small warning 50"]);
    await fail("big", 7_000, 3);
    await fail("small", 3_000, 3);
    await fail("other", 20, 4);
    const beyond = await fires();
    expect(beyond.map((each) => each.replace(/ \d+$/, ""))).toEqual([
      ...["big critical", "old critical", "other warning", "small critical"],
    ]);
    await fail("other", 20, 5);
    expect(await fires()).toContain("other warning 40");
    for (let turn = 0; turn < 30; turn += 1) await fires();
    expect((await fires()).map((each) => each.replace(/ \d+$/, ""))).toEqual([
      ...["big critical", "old critical", "other warning", "small critical"],
    ]);
    await runSql(database, "UPDATE local_message SET state = 2 WHERE topic <> 'old'");
    for (let turn = 0; turn < 12; turn += 1) await fires();
    expect(await fires()).toEqual(["old critical 150"]);
    await evaluator.close();
  });
}
