/**
 * Every statement on the live servers: prepared and run for each layout, and the plans at 200,000
 * rows of which 99 % are finished.
 */
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createStatements } from "../../src/databases/mysql/statements.ts";
import {
  createLayout,
  defaultLayout,
  messageTableLayout,
  tLocalMessageLayout,
} from "../../src/databases/sql/layouts.ts";
import { printMigrations } from "../../src/databases/sql/migrate.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { MYSQL_SERVICES, type MysqlFixture, mysqlFixture } from "./mysql-setup.ts";
import { hotStatements, otherStatements } from "./statement-samples.ts";

const ownLayout = createLayout({
  base: messageTableLayout,
  table: "订单消息",
  states: {
    pending: "待发送",
    sending: "发送中",
    sent: "已发送",
    failed: "发送失败",
    consumed: "已消费",
    suspended: "it's held",
  },
  columns: { topic: "order" },
});
const ownTable = `CREATE TABLE 订单消息 (id BIGINT PRIMARY KEY AUTO_INCREMENT, message_type VARCHAR(64) NOT NULL, message_key VARCHAR(128) NOT NULL,
  \`order\` VARCHAR(64) NOT NULL, message_body TEXT NOT NULL, state VARCHAR(32) NOT NULL, retry_count INT, next_retry_at DATETIME, last_retry_time DATETIME,
  fail_reason TEXT, message_id VARCHAR(128), lock_version BIGINT, gmt_create DATETIME NOT NULL, gmt_modified DATETIME NOT NULL,
  UNIQUE KEY (message_type, message_key), KEY (state, next_retry_at)) DEFAULT CHARSET = utf8mb4`;

describeWithService(MYSQL_SERVICES, "statements", (service) => {
  for (const layout of [defaultLayout, tLocalMessageLayout, messageTableLayout, ownLayout]) {
    test(`all can be prepared and run with the layout ${layout.table}`, async () => {
      const fixture = await mysqlFixture(service.name, layout, layout === ownLayout ? [ownTable] : []);
      const connection = await createConnection({ uri: fixture.url.replace(/^mariadb:/, "mysql:") });
      try {
        const session = await fixture.database.connect({ purpose: "relay", clock: layout.clock });
        const statements = createStatements(layout);
        // MariaDB looks at the check for a transaction while it prepares.
        await connection.query("START TRANSACTION");
        for (const statement of [...hotStatements(statements), ...otherStatements(statements)]) {
          await (await connection.prepare(statement.text)).close();
          await session.transaction(async (tx) => {
            // An INSERT that asks about the statement before it finds none that ended anything.
            await tx.run({ name: "before", text: "SELECT 1", params: [] });
            await tx.run(statement);
          });
        }
        await session.close();
        await fixture.openStore();
      } finally {
        await connection.end();
        await fixture.drop();
      }
    });
  }

  describe("plans at 200,000 rows", () => {
    let fixture: MysqlFixture;
    beforeAll(async () => {
      fixture = await mysqlFixture(service.name, defaultLayout);
      await fill(fixture);
    });
    afterAll(() => fixture.drop());

    // Statistics are as the server has gathered them by itself, then exact: both happen to users.
    for (const analyzed of [false, true]) {
      test(`${analyzed ? "analyzed" : "not analyzed"}: hot statements read what they mean, by an index, and sort nothing`, async () => {
        if (analyzed) await fixture.plain.query("ANALYZE TABLE local_message");
        const statements = createStatements(defaultLayout);
        for (const statement of hotStatements(statements)) {
          const plan = await explain(fixture, statement);
          const text = `${statement.name}\n${JSON.stringify(plan, undefined, 1)}`;
          for (const step of plan.filter(({ table }) => table === "m")) {
            expect(keysOf(statement), text).toContain(step["key"]);
            expect(step["type"], text).not.toBe("index");
            if (statement.name !== "keyQueues") expect(String(step["Extra"]), text).not.toMatch(/filesort|temporary/);
          }
        }
        for (const statement of otherStatements(statements)) {
          if (
            statement.name === "countByState" ||
            /^(INSERT INTO|DELETE FROM|SELECT (GET|RELEASE)_LOCK)/.test(statement.text)
          )
            continue;
          const plan = await explain(fixture, statement);
          const full = plan.filter(({ table, type }) => table === "m" && type === "ALL");
          expect(full, `${statement.name}\n${JSON.stringify(plan, undefined, 1)}`).toEqual([]);
        }
      });
    }
  });
});

test("schema/mysql.sql is what the migrations of the default layout are", async () => {
  const { migrations } = createStatements(defaultLayout).schema;
  // A change that is meant: npx vitest run packages/rowpost/test/databases/mysql-statements.test.ts
  // -u
  await expect(printMigrations(migrations)).toMatchFileSnapshot("../../schema/mysql.sql");
});

/** The indexes that a hot statement reads messages by. */
function keysOf({ name }: Statement): readonly string[] {
  if (name === "scan") return ["idx_state_next_retry"];
  if (name === "scanTopics") return ["idx_waiting_topic", "PRIMARY"];
  return [name === "keyQueues" ? "idx_open_key" : "PRIMARY"];
}

/**
 * 198,000 finished rows first, as in a table that has been in use, then the waiting ones, some of
 * them due and some delayed.
 */
async function fill({ plain }: MysqlFixture): Promise<void> {
  await plain.query("SET time_zone = '+00:00'");
  const digits =
    "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
  await plain.query(`INSERT INTO local_message (message_type, message_key, topic, message_body, state, ordering_key, next_retry_at)
  SELECT 'order.created', CONCAT('k', n), CONCAT('t', n % 20), '{}', IF(n < 198000, 2, ELT(1 + n % 10, 0, 0, 0, 0, 0, 0, 0, 1, 3, 5)), IF(n % 3 = 0, CONCAT('o', n % 1000), NULL),
    IF(n >= 198000 AND n % 4 = 0, NOW() + INTERVAL (n % 7 - 3) HOUR, NULL)
  FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS n
    FROM ${digits} AS a, ${digits} AS b, ${digits} AS c, ${digits} AS d, ${digits} AS e, (SELECT 0 AS d UNION SELECT 1) AS f) AS numbers ORDER BY n`);
}

async function explain({ plain }: MysqlFixture, statement: Statement): Promise<RowDataPacket[]> {
  // MariaDB looks at the check for a transaction while it explains.
  await plain.query("START TRANSACTION");
  // MySQL 9 prints a tree unless it is told otherwise.
  const text = statement.text.replace(/^(\/\*M!.*?\*\/ )?/, "$1EXPLAIN FORMAT = TRADITIONAL ");
  return (await plain.query(text, statement.params)) as RowDataPacket[];
}
