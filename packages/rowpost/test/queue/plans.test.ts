/**
 * The plans of the queue's hot statements: by which index each reads, and that nothing is walked or
 * sorted. With a month's first rows, on a full month of which the server knows nothing, where what
 * it knows is of the first rows, and analyzed: each of them happens to every month.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database, DialectName, Session } from "../../src/databases/database.ts";
import type { PlanNode } from "../../src/databases/postgres/plan.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { firstIdOf } from "../../src/message/queue-id.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { explained, numbersTo } from "../databases/plans.ts";
import { mysqlHarness, postgresHarness, sqliteHarness } from "../databases/store-harnesses.ts";
import { describeWithService } from "../services.ts";
import { hotQueueStatements, MONTH, STATEMENTS, TOPIC } from "./statement-samples.ts";

const ROWS = 60_000;
const INFO = `${TOPIC}_message_info_${MONTH}`;
const RECORDS = `${TOPIC}_message_info_consumption_${MONTH}`;

/** What a step of a plan reads, by which index; `fault`: it walks or sorts. */
interface Step {
  readonly table: string;
  readonly index: string;
  readonly fault?: string;
}

/** Tables and indexes that the statements may use, by what they are for. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  "range read": ["message_info primary"],
  "read at the end": ["message_info primary"],
  "ids read": ["message_info primary"],
  "redeliveries due": ["message_redelivery due"],
  "held-up keys": ["message_redelivery key"],
  "keys released": ["message_redelivery key", "message_redelivery primary"],
  "redeliveries changed": ["message_redelivery primary"],
  "redeliveries deleted": ["message_redelivery primary"],
  "progress moved": ["message_consumption primary"],
  "lag, first": ["message_info primary"],
  "lag, counted": ["message_info primary"],
  "redeliveries counted": ["message_redelivery primary"],
  "dead letters listed": ["message_redelivery primary"],
  "key searched": ["message_info key"],
  "hot key searched": ["message_info key"],
  "message read": ["message_info primary"],
  "records read": ["message_info_consumption primary"],
  "partitions walked": ["message_info primary"],
  "chunk verified": ["message_info primary", "message_redelivery primary"],
  "places back": ["message_info primary"],
  "places ahead": ["message_info primary"],
  "milestones passed": ["message_milestone primary"],
};

/** They sort what a list of parameters names, or one group's partitions. */
const SORTS_FEW = new Set([
  ...["ids read", "groups read", "leases read", "places read", "keys released"],
  ...["counters taken", "counters taken, asked"],
]);
const SORT = /filesort|^Sort|TEMP B-TREE/;
/** Read a month's tables, which begin empty; the queue's own tables have rows then. */
const OF_A_MONTH = /^(range|read at|ids read|lag|.*key searched|partitions walked|chunk|places|records read|headers)/;

describeWithService(["mariadb", "mysql9", "mysql8"], "plans of the queue", ({ name }) => {
  plans(() => mysqlHarness(name, "mysql2", defaultLayout));
});
describeWithService("postgres", "plans of the queue", () => {
  plans(() => postgresHarness(defaultLayout));
});
describe("plans of the queue on sqlite", () => {
  plans(() => Promise.resolve(sqliteHarness("file", defaultLayout)));
});

function plans(createHarness: () => Promise<StoreHarness>): void {
  let harness: StoreHarness;
  let database: Database;
  let session: Session;
  const run = async (text: string): Promise<void> => void (await session.run({ name: "by hand", text, params: [] }));

  beforeAll(async () => {
    harness = await createHarness();
    database = await harness.createDatabase();
    const store = database.queue.store();
    await store.migrate();
    await store.topics.create({ topic: TOPIC, partitions: 3, retentionMonths: null });
    await store.topics.makeMonths(TOPIC, [MONTH]);
    await store.close();
    session = await database.connect({ purpose: "relay", statementTimeoutMs: 90_000 });
    // Whatever the server would gather by itself meanwhile is not what is tried here.
    if (database.dialect === "postgres") {
      for (const table of [INFO, RECORDS, "message_redelivery", "message_consumption", "message_source"]) {
        await run(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
      }
    }
  });
  afterAll(async () => {
    await session.close();
    await database.close();
    await harness.close?.();
  });

  async function check(which: (name: string) => boolean = () => true): Promise<void> {
    const wrong: string[] = [];
    for (const [name, statement] of Object.entries(hotQueueStatements(STATEMENTS[database.dialect], ROWS))) {
      if (!which(name)) continue;
      const steps = await stepsOf(database.dialect, session, statement);
      const faults = steps
        .flatMap(({ fault }) => fault ?? [])
        .filter((fault) => !(SORT.test(fault) && SORTS_FEW.has(name)));
      const used = new Set(steps.map(({ table, index }) => `${table} ${index}`));
      const missing = (EXPECTED[name] ?? []).filter((each) => !used.has(each));
      if (faults.length === 0 && missing.length === 0) continue;
      wrong.push(`${name}: not by ${missing.join(", ")} but ${[...used].join(", ")}; ${faults.join("; ")}`);
    }
    expect(wrong).toEqual([]);
  }

  const analyze = async (): Promise<void> => {
    if (database.dialect !== "mysql") await run("ANALYZE");
    else await run(`ANALYZE TABLE ${INFO}, ${RECORDS}, message_redelivery, message_consumption, message_source`);
  };

  test("with the first rows of a month", async () => {
    for (const text of fill(database.dialect, 0, 3)) await run(text);
    await check((name) => OF_A_MONTH.test(name));
  });

  test("on a full month, of which the server knows nothing", { timeout: 120_000 }, async () => {
    for (const text of fill(database.dialect, 3, ROWS)) await run(text);
    if (database.dialect === "postgres") {
      const text = `SELECT relname FROM pg_class WHERE relname IN ('${INFO}', 'message_redelivery') AND reltuples < 0`;
      expect((await session.run({ name: "unknown", text, params: [] })).rows).toHaveLength(2);
    }
    await check();
  });

  test("analyzed, and where what was analyzed were the first rows", { timeout: 120_000 }, async () => {
    await analyze();
    await check();
    if (database.dialect === "sqlite") return;
    for (const table of [INFO, RECORDS, "message_redelivery"]) await run(`TRUNCATE TABLE ${table}`);
    for (const table of ["message_consumption", "message_source", "message_topic_partition"]) {
      await run(`DELETE FROM ${table} WHERE topic_id <> '${TOPIC}'`);
    }
    await run("DELETE FROM message_milestone");
    for (const text of fill(database.dialect, 0, 3)) await run(text);
    await analyze();
    for (const text of fill(database.dialect, 3, ROWS)) await run(text);
    await check((name) => OF_A_MONTH.test(name) || name === "held-up keys");
  });

  test("a message by its id, as docs/queue.md has it for people", async () => {
    const id = String(BigInt(firstIdOf(MONTH)) + 3n * 4194304n);
    const text = (where: string): string => `SELECT * FROM ${INFO} WHERE ${where}`;
    const steps = (where: string): Promise<Step[]> =>
      stepsOf(database.dialect, session, { name: "by hand", text: text(where), params: [] });
    expect(await steps(`partition_no = ${id} % 64 AND message_id = ${id}`)).toMatchObject([{ index: "primary" }]);
    if (database.dialect === "mysql")
      expect(await steps(`message_id = ${id}`)).toMatchObject([{ index: "i_message_id" }]);
  });
}

/** Rows `from` + 1 to `to` of each table; every third row of a month is of partition 0. */
function fill(dialect: DialectName, from: number, to: number): string[] {
  const rows = `FROM ${numbersTo(dialect, to)} AND n > ${from}`;
  const few = `FROM ${numbersTo(dialect, Math.min(to, 3_000))} AND n > ${from}`;
  const joined = (...parts: string[]): string =>
    dialect === "mysql" ? `CONCAT(${parts.join(", ")})` : parts.map((part) => `CAST(${part} AS TEXT)`).join(" || ");
  const instant = (text: string): string => (dialect === "postgres" ? `CAST(${text} AS timestamptz)` : text);
  const id = `${firstIdOf(MONTH)} + ${dialect === "postgres" ? "n::bigint" : "n"} * 4194304 + n % 3`;
  const at = instant("'2026-01-02 00:00:00.000'");
  const due = instant("CASE WHEN n % 50 = 0 THEN '2026-01-02 00:00:00.000' ELSE '2099-01-02 00:00:00.000' END");
  return [
    `INSERT INTO ${INFO} (partition_no, message_id, message_key, message_data) SELECT n % 3, ${id}, CASE WHEN n % 10 = 0 THEN 'hot' ELSE ${joined("'k'", "n")} END, '0123456789' ${rows}`,
    `INSERT INTO ${RECORDS} (message_id, consumer_group_id, round, attempt, instance, consumption_time, result, duration_ms) SELECT ${id}, 'billing', 0, 1, 'i', ${at}, 0, 1 ${rows}`,
    `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, ordering_key, next_attempt_at, gmt_create, gmt_modified) SELECT '${TOPIC}', CASE WHEN n % 4 < 2 THEN 'billing' ELSE 'stock' END, n % 3, ${id}, CASE WHEN n % 10 < 7 THEN 1 ELSE 0 END, 1, CASE WHEN n % 2 = 0 THEN ${joined("'k'", "n % 5000")} END, ${due}, ${at}, ${at} ${rows}`,
    `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, next_message_id, message_date) SELECT ${joined("'t'", "n")}, 'billing', 0, 0, 0 ${few}`,
    `INSERT INTO message_topic_partition (topic_id, partition_no, keyed_partitions) SELECT ${joined("'t'", "n")}, 0, 1 ${few}`,
    `INSERT INTO message_milestone (topic_id, partition_no, message_id) SELECT '${TOPIC}', n % 3, ${id} ${few}`,
    `INSERT INTO message_source (topic_id, source_id, message_id, gmt_create) SELECT ${joined("'t'", "n")}, 's', 1, ${instant("'2099-01-02 00:00:00.000'")} ${rows}`,
  ];
}

async function stepsOf(dialect: DialectName, session: Session, statement: Statement): Promise<Step[]> {
  const plan = await explained<PlanNode>(dialect, session, statement);
  if (plan.dialect === "sqlite") return plan.details.flatMap((detail) => sqliteStep(detail, statement));
  if (plan.dialect === "postgres") return postgresSteps(plan.root);
  return plan.steps.flatMap((row) => mysqlStep(row, statement));
}

/** What an alias stands for. */
function tableOf(alias: string, { text }: Statement): string {
  const named = new RegExp(`[\`"]?(\\w+)[\`"]? AS ${alias}\\b|[\`"](\\w+)[\`"] ${alias}\\b`).exec(text);
  return shortName(named?.[1] ?? named?.[2] ?? alias);
}

function shortName(table: string): string {
  return table.replace(`${TOPIC}_`, "").replace(`_${MONTH}`, "");
}

function shortIndex(index: string): string {
  if (/PRIMARY|_pkey$|autoindex/.test(index)) return "primary";
  if (/due$/.test(index)) return "due";
  return /key$/.test(index) ? "key" : index;
}

function mysqlStep(row: Readonly<Record<string, unknown>>, statement: Statement): Step[] {
  const [alias, type, key, extra] = [row["table"], row["type"], row["key"], row["Extra"]].map(String);
  // Lists of parameters, what was made of them, and what needs no table.
  if (alias === undefined || /^(j|null|<.*|t)$/.test(alias) || alias === "head") return [];
  const bad = type === "ALL" || type === "index" || /filesort/.test(extra ?? "");
  const step = { table: tableOf(alias, statement), index: shortIndex(key ?? "") };
  return [bad ? { ...step, fault: JSON.stringify(row) } : step];
}

function sqliteStep(detail: string, statement: Statement): Step[] {
  if (/TEMP B-TREE FOR ORDER BY/.test(detail)) return [{ table: "", index: "", fault: detail }];
  const [, how, alias = "", by = "none"] =
    /^(SCAN|SEARCH) (\w+)(?: EXISTS)?(?: USING (?:COVERING )?(?:INDEX )?(.*?)(?: \(|$))?/.exec(detail) ?? [];
  // Lists of parameters are virtual tables; and what a subquery made of them.
  if (how === undefined || /VIRTUAL TABLE|CONSTANT/.test(detail) || /^(j|first|m|head|counted|unread)$/.test(alias)) {
    if (alias !== "m" || how === "SCAN") return [];
  }
  const step = { table: tableOf(alias, statement), index: shortIndex(by) };
  // A partition's rows, each of them looked for in the list.
  const walks = statement.name === "changeRedeliveries" && !detail.includes("message_id=?");
  return [how === "SCAN" || walks ? { ...step, fault: detail } : step];
}

function postgresSteps(node: PlanNode): Step[] {
  const type = node["Node Type"];
  const inner = (node.Plans ?? []).flatMap(postgresSteps);
  const table = shortName(node["Relation Name"] ?? "");
  const index = shortIndex(node["Index Name"] ?? "");
  if (/Sort|Bitmap/.test(type)) return [{ table, index, fault: type }, ...inner];
  if (table === "" || type === "ModifyTable") return inner;
  const walks = type === "Seq Scan" || node["Index Cond"] === undefined;
  return [walks ? { table, index, fault: `${type} without a condition` } : { table, index }, ...inner];
}
