/** What the inbox forgets, and how. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { inbox as mysqlInbox } from "../../src/databases/mysql/inbox.ts";
import { inbox as postgresInbox } from "../../src/databases/postgres/inbox.ts";
import { createLayout } from "../../src/databases/sql/layouts.ts";
import { inbox as sqliteInbox } from "../../src/databases/sqlite/inbox.ts";
import { createInbox, type InboxOptions } from "../../src/inbox/index.ts";
import { ConfigurationError, type Logger, silentLogger } from "../../src/index.ts";
import { createManualClock } from "../../src/testing/index.ts";
import { numbersTo } from "../databases/plans.ts";
import { describeOnEach, type QueuePlace } from "../queue/places.ts";

const DAY_MS = 86_400_000;
/** So many hours ago. */
const AGO = {
  mysql: (hours: string) => `UTC_TIMESTAMP(3) - INTERVAL (${hours}) HOUR`,
  postgres: (hours: string) => `now() - (${hours}) * interval '1 hour'`,
  sqlite: (hours: string) => `strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || (${hours}) || ' hours')`,
};
const EXPLAIN = { mysql: "EXPLAIN FORMAT = TRADITIONAL", postgres: "EXPLAIN", sqlite: "EXPLAIN QUERY PLAN" };
const DIALECTS = { mysql: mysqlInbox, postgres: postgresInbox, sqlite: sqliteInbox };

interface Line {
  readonly level: string;
  readonly line: string;
}

function listening(): { readonly logger: Logger; readonly lines: Line[] } {
  const lines: Line[] = [];
  const listen = (level: string) => (line: string) => void lines.push({ level, line });
  return { lines, logger: { ...silentLogger, info: listen("info"), warn: listen("warn") } };
}

describeOnEach("retention of the inbox", (make) => {
  let place: QueuePlace;
  let database: Database;
  beforeEach(async () => {
    place = await make();
    database = place.open();
    await createInbox({ database }).migrate();
  });
  afterEach(async () => {
    await place.drop();
  });

  /** `count` messages, one for each half day back from now. */
  const fill = (count: number, hours = "n * 12 - 6"): Promise<unknown> =>
    place.query(`INSERT INTO message_inbox (consumer, message_type, message_key, handled_by, handled_at)
      SELECT 'points', 'order.paid', CONCAT('k', n), 'test', ${AGO[database.dialect](hours)} FROM ${numbersTo(database.dialect, count)}`);
  const left = async (): Promise<number> =>
    Number((await place.query("SELECT COUNT(*) AS n FROM message_inbox"))[0]?.["n"]);
  const inboxOf = (options: Partial<InboxOptions>) => createInbox({ database, ...options });

  it("forgets what is older, in batches, and nothing else", async () => {
    await fill(3_000, "n");
    expect(await inboxOf({ keepMs: 150 * DAY_MS }).purge()).toBe(0);
    expect(await inboxOf({ keepMs: 1_500.5 * 3_600_000 }).purge()).toBe(1_500);
    expect(await left()).toBe(1_500);
    const [row] = await place.query("SELECT MAX(CAST(SUBSTR(message_key, 2) AS DECIMAL(9))) AS n FROM message_inbox");
    expect(Number(row?.["n"])).toBe(1_500);
  });

  it("remembers for 30 days by default, and a message may then come again", async () => {
    await fill(100);
    const inbox = inboxOf({ consumer: "points" });
    expect(await inbox.purge()).toBe(40);
    const again = (key: string) => inbox.handle(database, { message: { type: "order.paid", key } }, async () => 1);
    expect((await again("k60")).outcome).toBe("duplicate");
    expect((await again("k61")).outcome).toBe("handled");
  });

  it("finds the oldest by the index on the time", { timeout: 60_000 }, async () => {
    await fill(20_000, "n");
    const session = await database.connect({ purpose: "tool" });
    await session.run({
      name: "analyze",
      text: database.dialect === "mysql" ? "ANALYZE TABLE message_inbox" : "ANALYZE",
      params: [],
    });
    const statements = DIALECTS[database.dialect].createStatements(createLayout({ table: "message_inbox" }));
    const handledAt = new Date(Date.now() - 20 * DAY_MS).toISOString();
    const after = { consumer: "points", type: "order.paid", key: "k", handledBy: "x", messageId: null, handledAt };
    const asked = { fromMs: Date.now() - 30 * DAY_MS, toMs: Date.now(), consumer: undefined, limit: 1_000 };
    for (const statement of [
      statements.forgetHandlings({ olderThanMs: 30 * DAY_MS, limit: 500 }),
      statements.readHandlings({ ...asked, after: undefined }),
      statements.readHandlings({ ...asked, after, consumer: "points" }),
    ]) {
      const plan = await session.run({
        name: "explain",
        text: `${EXPLAIN[database.dialect]} ${statement.text}`,
        params: statement.params,
      });
      const text = JSON.stringify(plan.rows);
      expect(text).toMatch(/idx_handled_at|message_inbox_at/);
      expect(text).not.toMatch(/Seq Scan|"type":"(?:ALL|index)"|filesort|SCAN message_inbox|TEMP B-TREE/);
    }
    await session.close();
  });

  it("warns once when it forgets sooner than a message can come again", async () => {
    const { lines, logger } = listening();
    const inbox = inboxOf({ keepMs: DAY_MS, logger });
    await inbox.purge();
    await inbox.purge();
    expect(lines).toEqual([{ level: "warn", line: "the inbox forgets messages that can still come again" }]);
    lines.length = 0;
    await inboxOf({ keepMs: DAY_MS, retryWindowMs: DAY_MS, logger }).purge();
    await inboxOf({ logger }).purge();
    expect(lines).toEqual([]);
  });

  describe("housekeeping", () => {
    it("begins at once, goes on at its times, outlives a failure, and ends when it is stopped", async () => {
      const clock = createManualClock();
      const { lines, logger } = listening();
      const inbox = inboxOf({ clock, logger });
      await fill(100);
      const housekeeping = inbox.keepHouse({ everyMs: 60_000 });
      await expect.poll(() => lines.length).toBe(1);
      expect(await left()).toBe(60);
      await place.query("ALTER TABLE message_inbox RENAME TO message_inbox_away");
      await clock.advance(60_000);
      await expect.poll(() => lines.length).toBe(2);
      await place.query("ALTER TABLE message_inbox_away RENAME TO message_inbox");
      await housekeeping.stop();
      expect(lines.map(({ line }) => line)).toEqual([
        "the inbox has forgotten messages",
        "housekeeping of the inbox failed",
      ]);
    });
  });

  it("refuses times that mean something else than they say", () => {
    expect(() => inboxOf({ keepMs: 30 })).toThrow(ConfigurationError);
    expect(() => inboxOf({ keepMs: Number.NaN })).toThrow(ConfigurationError);
    expect(() => inboxOf({ retryWindowMs: -1 })).toThrow(ConfigurationError);
    expect(() => inboxOf({}).keepHouse({ everyMs: 10 })).toThrow(ConfigurationError);
    expect(() => inboxOf({ keepDays: 30 } as never)).toThrow(/"keepDays" is not an option/);
  });
});
