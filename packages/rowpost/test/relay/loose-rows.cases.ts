/** A table of the user's own, whose columns may be NULL: what nobody can send stops nobody else. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createLayout } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { NO_OPTIONAL_COLUMNS } from "../../src/testing/store-contract/cases/layouts.ts";
import { testDialect } from "../../src/testing/test-dialect.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const layout = createLayout({ table: "loose", columns: NO_OPTIONAL_COLUMNS });

/** Defines the cases. */
export function defineLooseRowsCases(service: RelayTestService): void {
  let database: RelayTestDatabase;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    const { idColumn, instantType } = testDialect(database.connect().dialect);
    await database.sql(`CREATE TABLE loose (id ${idColumn}, message_type VARCHAR(64) NULL, message_key VARCHAR(128) NULL,
      topic VARCHAR(255) NULL, message_body TEXT NULL, state INT NULL, retry_count INT NULL, next_retry_at ${instantType} NULL,
      fail_reason VARCHAR(1024) NULL, gmt_create ${instantType} NULL, gmt_modified ${instantType} NULL)`);
    await migrate(database.connect(), { layout });
  });

  afterEach(() => database.drop());

  describe("a table whose columns may all be NULL", () => {
    it("sends what can be sent; every other row becomes failed and says why", async () => {
      const rows = [
        "('t', 'good-1', 'orders', '{}', 0)",
        "('t', 'no-topic', NULL, '{}', 0)",
        "('t', NULL, 'orders', '{}', 0)",
        "(NULL, 'no-type', 'orders', '{}', 0)",
        "('t', 'no-body', 'orders', NULL, 0)",
        "('t', 'no-state', 'orders', '{}', NULL)",
        "('t', 'id-zero', 'orders', '{}', 0)",
        "('t', 'id-below', 'orders', '{}', 0)",
        "(NULL, NULL, NULL, NULL, 0)",
        "('t', 'good-2', 'orders', '{}', 0)",
      ];
      await database.sql(
        `INSERT INTO loose (message_type, message_key, topic, message_body, state) VALUES ${rows.join(", ")}`,
      );
      await database.sql("UPDATE loose SET id = 0 WHERE message_key = 'id-zero'");
      await database.sql("UPDATE loose SET id = -5 WHERE message_key = 'id-below'");
      const broker = memory();
      const own = database.connect();
      const relay = createRelay({ database: own, broker, layout });
      await relay.tick();
      await relay.stop();
      expect(broker.published("orders").map(({ key }) => key)).toEqual(["good-1", "good-2"]);
      const failed = await database.sql("SELECT message_key, fail_reason FROM loose WHERE state = 3 ORDER BY id");
      const reasons = failed.map((row) => [row["message_key"], String(row["fail_reason"]).replace(/[;,].*/, "")]);
      expect(reasons).toEqual([
        ["id-below", "ID_BELOW_ONE: ids begin at 1"],
        ["id-zero", "ID_BELOW_ONE: ids begin at 1"],
        ["no-topic", "BROKEN_ROW: topic is empty or NULL"],
        [null, "BROKEN_ROW: message type or message key is empty or NULL"],
        ["no-type", "BROKEN_ROW: message type or message key is empty or NULL"],
        ["no-body", "BROKEN_ROW: message body is NULL"],
        ["no-state", expect.stringMatching(/^UNKNOWN_STATE: the .*NULL/)],
        [null, "BROKEN_ROW: message type or message key is empty or NULL"],
      ]);
      const admin = own.messageAdmin({ layout });
      expect((await admin.list({ filter: {}, limit: 20 })).messages).toHaveLength(10);
      await admin.close();
    });
  });
}
