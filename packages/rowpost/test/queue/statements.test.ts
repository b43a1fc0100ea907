/** Every statement of the queue is prepared on every live server. */
import { describe, expect, test } from "vitest";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { PREPARE, recorded } from "../databases/prepared.ts";
import { mysqlHarness, postgresHarness, sqliteHarness } from "../databases/store-harnesses.ts";
import { describeWithService } from "../services.ts";
import {
  type AllStatements,
  hotQueueStatements,
  MONTH,
  otherQueueStatements,
  STATEMENTS,
  TOPIC,
} from "./statement-samples.ts";

/** Of {@link AllStatements}, what is no group of statements. */
const MAKERS = ["schema", "holding"];
/**
 * Texts of tables, which no server prepares (every test that makes a topic runs them), and a number
 * of rows.
 */
const NO_STATEMENTS = ["topics.createMonth", "topicRows.dropTable", "append.rowsOfInsert", "append.takesTurns"];

function allStatements(statements: AllStatements): Statement[] {
  return [...Object.values(hotQueueStatements(statements, 3_000)), ...otherQueueStatements(statements)];
}

describe("samples of the queue's statements", () => {
  for (const [dialect, statements] of Object.entries(STATEMENTS)) {
    test(`hold every statement of ${dialect}`, () => {
      const called = new Set<string>();
      const names: string[] = [];
      const noted = <Group extends object>(group: string, methods: Group): Group => {
        names.push(...Object.keys(methods).map((method) => `${group}.${method}`));
        return recorded(group, methods, called);
      };
      const groups = Object.entries(statements).filter(
        ([name, value]) => typeof value === "object" && !MAKERS.includes(name),
      );
      const proxied = Object.fromEntries(groups.map(([name, methods]) => [name, noted(name, methods as object)]));
      const holding = noted("holding", statements.holding({ topic: TOPIC, group: "billing" }));
      allStatements({ ...statements, ...proxied, holding: () => holding });
      expect([...called].sort()).toEqual(names.filter((name) => !NO_STATEMENTS.includes(name)).sort());
    });
  }
});

describeWithService(["mariadb", "mysql9", "mysql8"], "statements of the queue", ({ name }) => {
  prepareAll(() => mysqlHarness(name, "mysql2", defaultLayout));
});
describeWithService("postgres", "statements of the queue", () => {
  prepareAll(() => postgresHarness(defaultLayout));
});
describe("statements of the queue on sqlite", () => {
  prepareAll(() => Promise.resolve(sqliteHarness("memory", defaultLayout)));
});

function prepareAll(createHarness: () => Promise<StoreHarness>): void {
  test("are all prepared", async () => {
    const harness = await createHarness();
    const database = await harness.createDatabase();
    const store = database.queue.store();
    await store.migrate();
    await store.topics.makeMonths(TOPIC, [MONTH]);
    const session = await database.connect({ purpose: "tool" });
    const refused: string[] = [];
    for (const statement of allStatements(STATEMENTS[database.dialect])) {
      await PREPARE[database.dialect](session, statement).catch((error: unknown) => {
        refused.push(`${statement.name}: ${String(error)}\n${statement.text}`);
      });
    }
    await session.close();
    await store.close();
    await database.close();
    await harness.close?.();
    expect(refused).toEqual([]);
  });
}
