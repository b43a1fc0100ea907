/**
 * A scan by topic with 200,000 waiting rows of a broken topic before the few of a healthy one,
 * delayed ones among them: with statistics from before those rows came, without any, and with exact
 * ones.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { createStatements as mysqlStatements } from "../../src/databases/mysql/statements.ts";
import { createStatements as postgresStatements } from "../../src/databases/postgres/statements.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import { createStatements as sqliteStatements } from "../../src/databases/sqlite/statements.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { describeWithService } from "../services.ts";
import { analyze, faults, numbersTo, openMigrated, rowsRead } from "./plans.ts";
import { mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

const BROKEN = 200_000;
const HEALTHY = 400;
const LIMIT = 100;

describeWithService(["mariadb", "mysql9", "mysql8"], "scan by topic", ({ name }) => {
  scans(() => mysqlHarness(name, "mysql2", defaultLayout), mysqlStatements);
});
describeWithService("postgres", "scan by topic", () => {
  scans(() => postgresHarness(defaultLayout), postgresStatements);
});
describe("scan by topic on sqlite", () => {
  scans(() => Promise.resolve(sqliteHarness("file", defaultLayout)), sqliteStatements);
});

function scans(createHarness: () => Promise<StoreHarness>, create: (layout: TableLayout) => DialectStatements): void {
  const { relay } = create(defaultLayout);
  const limits = { afterId: "0", immediateLimit: LIMIT, dueLimit: LIMIT };
  const request = { shards: undefined, bodyLimit: 1_000_000 };
  const scan = relay.scanTopics({ ...request, topics: [{ topic: "healthy", ...limits }] });
  const scanOn = relay.scanTopics({
    ...request,
    topics: [{ topic: "broken", ...limits, dueLimit: 0, afterId: String(BROKEN - 50) }],
  });
  let database: Database;
  let session: Session;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ close, database, session } = await openMigrated(await createHarness()));
    // Statistics of a table in which next to nothing waits, and all of it for one topic.
    await fill("broken", 40);
    await analyze(database.dialect, session);
    await fill("broken", BROKEN);
    await fill("healthy", HEALTHY);
  });
  afterAll(() => close());

  /** A quarter of the rows is due, a quarter delayed. */
  async function fill(topic: string, count: number): Promise<void> {
    const { dialect } = database;
    const key = dialect === "mysql" ? `CONCAT('${topic}', ${count}, '-', n)` : `'${topic}${count}-' || n`;
    const time = {
      mysql: "UTC_TIMESTAMP(3) + INTERVAL (n % 4 - 1) HOUR",
      postgres: "now() + (n % 4 - 1) * interval '1 hour'",
      sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now', (n % 4 - 1) || ' hours')",
    }[dialect];
    const text = `INSERT INTO local_message (message_type, message_key, topic, message_body, next_retry_at)
SELECT 'order.created', ${key}, '${topic}', '{}', CASE WHEN n % 2 = 0 THEN ${time} END FROM ${numbersTo(dialect, count)}`;
    await session.run({ name: "fill", text, params: [] });
  }

  for (const analyzed of [false, true]) {
    test(`reads rows of its topics alone, ${analyzed ? "analyzed" : "with statistics from before"}`, async () => {
      if (analyzed) await analyze(database.dialect, session);
      expect((await session.run(scan)).rows).toHaveLength(2 * LIMIT);
      expect((await session.run(relay.nextTopics(["", "broken", "healthy"]))).rows.map(({ topic }) => topic)).toEqual([
        "broken",
        "healthy",
        null,
      ]);
      expect(await faults(database.dialect, session, scan)).toEqual([]);
      if (database.dialect === "sqlite") {
        const plan = await session.run({ name: "plan", text: `EXPLAIN QUERY PLAN ${scan.text}`, params: scan.params });
        const used = plan.rows.map(({ detail }) => String(detail)).filter((detail) => / m USING .*topic/.test(detail));
        expect(used, JSON.stringify(plan.rows)).toHaveLength(2);
        return;
      }
      // Each row once in the index and once by its id, and of the branches' temporary table.
      expect(await rowsRead(database.dialect, session, scan), scan.text).toBeLessThan(8 * LIMIT);
      expect(await rowsRead(database.dialect, session, scanOn), scanOn.text).toBeLessThan(8 * LIMIT);
      const probes = relay.nextTopics(["", "broken", "healthy"]);
      expect(await rowsRead(database.dialect, session, probes), probes.text).toBeLessThan(20);
    });
  }
}
