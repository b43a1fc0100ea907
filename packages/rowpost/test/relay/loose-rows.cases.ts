/** A table of the user's own, whose columns may be NULL: what nobody can send stops nobody else. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createLayout } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { NO_OPTIONAL_COLUMNS } from "../contracts/store-contract/cases/layouts.ts";
import { testDialect } from "../contracts/test-dialect.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const REFUSAL = { status: "failed", scope: "message", retriable: true, code: "NO", reason: "no" } as const;
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

  describe("numbers at the ends of their columns", () => {
    const large = createLayout({
      table: "large",
      columns: { ...NO_OPTIONAL_COLUMNS, deliveryCount: "delivery_count", lockVersion: "lock_version" },
    });
    const ENDS = ["2147483647", "2147483648", "9007199254740992", "9007199254740993", "9223372036854775807"];
    const IDS = ["9007199254740993", "9223372036854775806"];
    const COUNTS = ["retry_count", "delivery_count", "lock_version"] as const;

    it.each(service === "sqlite" ? (["on"] as const) : (["on", "off"] as const))(
      "sendingMark %s: each such message is sent, or told with its reason; the others are all sent",
      async (sendingMark) => {
        const { idColumn, instantType, textType } = testDialect(database.connect().dialect);
        await database.sql(`CREATE TABLE large (id ${idColumn}, message_type VARCHAR(64), message_key VARCHAR(128),
          topic VARCHAR(255), message_body TEXT, state INT, retry_count BIGINT DEFAULT 0, next_retry_at ${instantType} NULL,
          fail_reason VARCHAR(1024) NULL, gmt_create ${instantType} NULL, gmt_modified ${instantType} NULL,
          delivery_count BIGINT DEFAULT 0, lock_version BIGINT DEFAULT 0)`);
        await migrate(database.connect(), { layout: large });
        const put = async (key: string, columns = "", values = ""): Promise<void> => {
          const names = `message_type, message_key, topic, message_body, state${columns}`;
          await database.sql(`INSERT INTO large (${names}) VALUES ('t', '${key}', 'orders', '{}', 0${values})`);
        };
        // With the list, what the table refuses is published again with every lease.
        const ends = sendingMark === "on" ? ENDS : ENDS.slice(0, -1);
        for (const column of COUNTS) for (const end of ends) await put(`${column}=${end}`, `, ${column}`, `, ${end}`);
        for (const end of ends) await put(`both=${end}`, ", retry_count, delivery_count", `, ${end}, ${end}`);
        for (const key of ["good-1", "good-2", "refused", "good-3"]) await put(key);
        for (const id of IDS) await put(`id=${id}`, ", id", `, ${id}`);
        const refused = (key: string): boolean => key === "refused" || key.startsWith("both");
        const broker = memory({ outcome: ({ key }) => (refused(key) ? REFUSAL : undefined) });
        const told: string[] = [];
        const note = (line: string, fields?: object): void => void told.push(JSON.stringify([line, fields]));
        const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
        const relay = createRelay({ database: database.connect(), broker, layout: large, sendingMark, logger });
        for (let turn = 0; turn < 3; turn += 1) await relay.tick();
        await relay.stop();
        const rows = await database.sql(
          `SELECT CAST(id AS ${textType}) AS id, message_key, state, fail_reason FROM large`,
        );
        const sent = rows.filter(({ state }) => Number(state) === 2).map((row) => String(row["message_key"]));
        const harmless = ends.flatMap((end) => [`retry_count=${end}`, `lock_version=${end}`]);
        const last = `lock_version=${ENDS.at(-1)}`;
        // PostgreSQL, MySQL and MariaDB refuse the change that would count beyond the last number.
        const refuses = service !== "sqlite" && sendingMark === "on";
        const good = ["good-1", "good-2", "good-3", ...IDS.map((id) => `id=${id}`)];
        const expected = [...good, ...harmless].filter((key) => !(refuses && key === last));
        expect(sent.sort()).toEqual(expected.sort());
        const silent = rows.filter(
          (row) =>
            Number(row["state"]) !== 2 &&
            row["fail_reason"] === null &&
            !told.some((line) => line.includes(`"id":"${String(row["id"])}"`)),
        );
        expect(silent).toEqual([]);
      },
    );
  });
}
