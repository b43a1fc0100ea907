/** Keys, versions and zones of message tables that are not as `migrate` makes them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { examine } from "../../src/admin/doctor/examine.ts";
import { memory } from "../../src/brokers/memory.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { createLayout, defaultLayout, type LayoutOptions } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { SchemaError } from "../../src/runtime/errors.ts";
import { NO_OPTIONAL_COLUMNS } from "../contracts/store-contract/cases/layouts.ts";
import { testDialect } from "../contracts/test-dialect.ts";
import { describeOnEach, type OwnTablePlace } from "./bench.ts";

const OPTIONS: LayoutOptions = {
  table: "app_event",
  columns: { ...NO_OPTIONAL_COLUMNS, lockVersion: "version", deliverAt: "deliver_at", consumedAt: "consumed_at" },
};
const layout = createLayout(OPTIONS);
const MESSAGE = { type: "order.created", key: "1", topic: "orders", body: 1 } as const;

describeOnEach("a table of one's own", (open, { dialect, name }) => {
  let place: OwnTablePlace;
  beforeEach(async () => {
    place = await open();
  });
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    await place.close();
  });

  async function makeTable(keys: string, instantType = testDialect(dialect).instantType, end = ""): Promise<void> {
    const { idColumn } = testDialect(dialect);
    const id = keys.includes("PRIMARY KEY") ? idColumn.replace(/ PRIMARY KEY/, "") : idColumn;
    await place.sql(`CREATE TABLE app_event (id ${id}, message_type VARCHAR(64) NOT NULL, message_key VARCHAR(128) NOT NULL,
      topic VARCHAR(255) NOT NULL, message_body TEXT NOT NULL, state INT NOT NULL DEFAULT 0, retry_count INT NOT NULL DEFAULT 0,
      next_retry_at ${instantType} NULL, deliver_at ${instantType} NULL, consumed_at ${instantType} NULL, fail_reason VARCHAR(1024),
      version BIGINT NOT NULL DEFAULT 0, month INT NOT NULL DEFAULT 1, gmt_create ${instantType} NULL, gmt_modified ${instantType} NULL${keys})${end}`);
  }

  const enqueueOne = async (of: TableLayout = layout): Promise<void> => {
    const outbox = createOutbox({ database: place.database, layout: of });
    await outbox.transaction((tx) => outbox.enqueue(tx, MESSAGE));
  };

  const rowCount = async (): Promise<number> =>
    Number((await place.sql("SELECT COUNT(*) AS n FROM app_event"))[0]?.["n"]);

  const unfitKeys = [
    ["no unique key", ""],
    ["a wider one", ", UNIQUE (message_type, message_key, month)"],
    ["one over an index that is not unique", dialect === "mysql" ? ", KEY (message_type, message_key)" : ""],
  ] as const;
  for (const [title, keys] of unfitKeys) {
    test(`${title}: migrate, relay and doctor say so, and enqueue refuses instead of writing a message twice`, async () => {
      await makeTable(keys);
      const { warnings } = await migrate(place.database, { layout });
      expect(warnings).toEqual([expect.stringMatching(/no unique key over \(message_type, message_key\).*UNIQUE/)]);
      const { found } = await examine({ database: place.database, layout });
      expect(found).toContainEqual(expect.objectContaining({ id: "D109", severity: "warning" }));
      const warned: string[] = [];
      const nothing = (): void => undefined;
      const logger = { debug: nothing, info: nothing, error: nothing, warn: (line: string) => void warned.push(line) };
      const relay = createRelay({ database: place.database, broker: memory(), layout, logger });
      await relay.drain();
      await relay.stop();
      expect(warned.filter((line) => line.includes("no unique key"))).toHaveLength(1);

      for (let times = 0; times < 2; times += 1) {
        await expect(enqueueOne()).rejects.toThrow(SchemaError);
        await expect(enqueueOne()).rejects.toThrow(/no unique key over its type and key/);
      }
      expect(await rowCount()).toBe(0);
    });
  }

  test("with the key nothing is said, and the statement of doctor makes it", async () => {
    await makeTable("");
    await migrate(place.database, { layout });
    const { mend = "" } =
      (await examine({ database: place.database, layout })).found.find(({ id }) => id === "D109") ?? {};
    await place.sql(mend.slice(0, mend.indexOf(";")));
    expect((await migrate(place.database, { layout })).warnings).toEqual([]);
    await enqueueOne();
    await expect(enqueueOne()).rejects.toThrow(/order.created/);
    expect(await rowCount()).toBe(1);
  });

  if (dialect === "mysql") {
    test("a table in partitions has a wider key at best", async () => {
      await makeTable(
        ", PRIMARY KEY (id, month), UNIQUE (message_type, message_key, month)",
        undefined,
        " PARTITION BY RANGE (month) (PARTITION p0 VALUES LESS THAN (7), PARTITION p1 VALUES LESS THAN MAXVALUE)",
      );
      expect((await migrate(place.database, { layout })).warnings).toHaveLength(1);
      await expect(enqueueOne()).rejects.toThrow(SchemaError);
      expect(await rowCount()).toBe(0);
    });

    test("a unique key over the message key alone tells duplicates", async () => {
      await makeTable(", UNIQUE (message_key)");
      expect((await migrate(place.database, { layout })).warnings).toEqual([]);
      await enqueueOne();
      await expect(enqueueOne()).rejects.toThrow(/order.created/);
    });

    test("TIMESTAMP beside the server's clock: doctor says what a session of another zone does", async () => {
      await makeTable(", UNIQUE (message_type, message_key)", "TIMESTAMP");
      const server = createLayout({ ...OPTIONS, clock: "server", fractionDigits: 0 });
      await migrate(place.database, { layout: server });
      const { found } = await examine({ database: place.database, layout: server });
      expect(found).toContainEqual(
        expect.objectContaining({ id: "D107", what: expect.stringMatching(/next_retry_at.* TIMESTAMP/) }),
      );
    });
  }

  if (dialect !== "sqlite") {
    test("a default of lock_version that went back to a number: migrate and doctor say so, with what mends it", async () => {
      await migrate(place.database, { layout: defaultLayout });
      const look = async () => (await examine({ database: place.database })).found.filter(({ id }) => id === "D110");
      expect([(await migrate(place.database, { layout: defaultLayout })).warnings, await look()]).toEqual([[], []]);
      await place.sql("ALTER TABLE local_message ALTER COLUMN lock_version SET DEFAULT 0");
      const { warnings } = await migrate(place.database, { layout: defaultLayout });
      expect(warnings).toEqual([expect.stringMatching(/lock_version of local_message begins at the same number/)]);
      const [found] = await look();
      expect(found?.severity).toBe("warning");
      await place.sql(String(found?.mend.slice(0, found.mend.indexOf(";"))));
      expect([(await migrate(place.database, { layout: defaultLayout })).warnings, await look()]).toEqual([[], []]);
    });

    test("in a table of one's own that is a note of doctor", async () => {
      await makeTable(", UNIQUE (message_type, message_key)");
      expect((await migrate(place.database, { layout })).warnings).toEqual([]);
      const { found } = await examine({ database: place.database, layout });
      const note = found.find(({ id }) => id === "D110");
      expect(note).toMatchObject({
        severity: "note",
        what: "version of app_event begins at the same number in every row",
      });
      await place.sql(String(note?.mend.slice(0, note.mend.indexOf(";"))));
      expect((await examine({ database: place.database, layout })).found.filter(({ id }) => id === "D110")).toEqual([]);
    });
  }

  if (dialect === "postgres") {
    for (const zone of ["America/Los_Angeles", "Asia/Shanghai", "Pacific/Chatham"]) {
      test(`timestamp without zone, database in ${zone}: delays, confirmations and times are UTC`, async () => {
        const [row] = await place.sql("SELECT current_database() AS name");
        await place.sql(`ALTER DATABASE ${String(row?.["name"])} SET TimeZone TO '${zone}'`);
        await makeTable(", UNIQUE (message_type, message_key)", "timestamp");
        await migrate(place.database, { layout });
        const { default: pg } = await import("pg");
        const client = new pg.Client({ connectionString: place.url });
        await client.connect();
        ends.push(() => client.end());
        const outbox = createOutbox({ database: place.database, layout });
        const at = new Date("2027-03-14T10:30:00.123Z");
        await client.query("BEGIN");
        await outbox.enqueue(client, [
          { ...MESSAGE, key: "now" },
          { ...MESSAGE, key: "hour", delayMs: 3_600_000 },
          // 02:30 on that day is no time in Los Angeles.
          { ...MESSAGE, key: "gap", deliverAt: new Date("2027-03-14T02:30:00.123Z") },
          { ...MESSAGE, key: "at", deliverAt: at },
        ]);
        await client.query("COMMIT");
        const utc = `(now() AT TIME ZONE 'UTC')`;
        const stored =
          await place.sql(`SELECT message_key AS k, round(extract(epoch FROM deliver_at - ${utc})) BETWEEN 3590 AND 3601 AS hour,
          next_retry_at::text AS at, abs(extract(epoch FROM gmt_create - ${utc})) < 60 AS fresh FROM app_event ORDER BY id`);
        expect(stored.map(({ k, fresh }) => [k, String(fresh)])).toEqual([
          ["now", "t"],
          ["hour", "t"],
          ["gap", "t"],
          ["at", "t"],
        ]);
        expect(String(stored[1]?.["hour"])).toBe("t");
        expect([stored[2]?.["at"], stored[3]?.["at"]]).toEqual(["2027-03-14 02:30:00.123", "2027-03-14 10:30:00.123"]);

        const broker = memory();
        const relay = createRelay({ database: place.database, broker, layout, logger: "silent" });
        await relay.drain();
        await relay.stop();
        expect(broker.published("orders").map(({ key }) => key)).toEqual(["now"]);
        await client.query("BEGIN");
        await outbox.confirm([{ type: MESSAGE.type, key: "now" }], { tx: client });
        await client.query("COMMIT");
        const confirmed = await place.sql(
          `SELECT abs(extract(epoch FROM consumed_at - ${utc})) < 60 AS fresh, abs(extract(epoch FROM gmt_modified - ${utc})) < 60 AS changed
            FROM app_event WHERE message_key = 'now'`,
        );
        expect(confirmed.map((each) => Object.values(each).map(String))).toEqual([["t", "t"]]);
        const { found } = await examine({ database: place.database, layout });
        expect(found).toContainEqual(
          expect.objectContaining({ id: "D107", what: expect.stringContaining(zone), severity: "warning" }),
        );
      });
    }
  }

  test(`the longest table name works, and a longer one is refused (${name})`, async () => {
    const longest = createLayout({ table: "t".repeat(44) });
    expect(() => createLayout({ table: "t".repeat(45) })).toThrow(/1 to 44 bytes of UTF-8 .*_operation_conflict/);
    await migrate(place.database, { layout: longest });
    await migrate(place.database, { layout: longest });
    await enqueueOne(longest);
    const broker = memory();
    const relay = createRelay({ database: place.database, broker, layout: longest, logger: "silent" });
    await relay.drain();
    await relay.stop();
    expect(broker.published("orders")).toHaveLength(1);
    const names = [...new Set(Object.values(longest.columns))];
    expect(names.length).toBeGreaterThan(20);
    const made = await place.sql(
      {
        mysql: "SELECT TABLE_NAME AS t FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()",
        postgres: "SELECT tablename AS t FROM pg_tables WHERE schemaname = current_schema()",
        sqlite: "SELECT name AS t FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
      }[dialect],
    );
    expect(made.map((row) => String(row["t"])).filter((each) => each.startsWith("ttt"))).toHaveLength(12);
  });
});
