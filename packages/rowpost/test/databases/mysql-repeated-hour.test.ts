/**
 * Waits in columns of local time, in a zone with daylight saving: on a server of its own, since
 * enqueue goes by the server's zone. The waits end about the next two changes of its clock; what
 * is due then, the server says itself, put to each minute of that night.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database, TableLayout } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { describeWithService } from "../services.ts";

const ZONE = "Europe/Berlin";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const script = fileURLToPath(new URL("../../../../tools/services/mariadb", import.meta.url));

/** When the zone sets its clock next, each to the hour: found, and not written down. */
function changesAhead(): { readonly back: number; readonly forward: number } {
  const hourAt = new Intl.DateTimeFormat("en-GB", { timeZone: ZONE, timeZoneName: "longOffset" });
  const offsetAt = (ms: number): string =>
    hourAt.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const found = { back: 0, forward: 0 };
  const first = Math.ceil(Date.now() / HOUR_MS) + 48;
  for (let hour = first; hour < first + 400 * 24; hour++) {
    const [before, after] = [offsetAt((hour - 1) * HOUR_MS), offsetAt(hour * HOUR_MS)];
    if (before > after && found.back === 0) found.back = hour * HOUR_MS;
    if (before < after && found.forward === 0) found.forward = hour * HOUR_MS;
  }
  return found;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

describeWithService("mariadb", "a wait in local time", () => {
  let run: (verb: "start" | "reset") => Promise<unknown>;
  let data: string;
  let database: Database;
  let plain: Connection;

  beforeAll(async () => {
    data = await mkdtemp(path.join(tmpdir(), "rowpost-test-mariadb-"));
    const port = await freePort();
    const env = { ...process.env, TZ: ZONE, MARIADB_PORT: String(port), MARIADB_DATA: data };
    run = (verb) => promisify(execFile)(script, [verb], { env, timeout: 170_000 });
    await run("start");
    plain = await createConnection({ host: "127.0.0.1", port, user: "root", dateStrings: true });
    await plain.query("CREATE DATABASE waits CHARACTER SET utf8mb4");
    await plain.query("USE waits");
    database = mysql({ host: "127.0.0.1", port, user: "root", database: "waits" });
    for (const layout of [tLocalMessageLayout, messageTableLayout]) await migrate(database, { layout });
  }, 180_000);

  afterAll(async () => {
    await database?.close();
    await plain?.end();
    await run?.("reset");
    await rm(data, { recursive: true, force: true });
  }, 60_000);

  /** When in that night the server first finds the row due, by the scan's own words. */
  async function dueAt(layout: TableLayout, key: string, target: number): Promise<number | undefined> {
    const { messageKey, nextRetryAt } = layout.columns;
    for (let at = target - 4 * HOUR_MS; at <= target + 4 * HOUR_MS; at += 5 * MINUTE_MS) {
      await plain.query(`SET timestamp = ${at / 1000}`);
      const [rows] = await plain.query(
        `SELECT 1 FROM ${layout.table} WHERE ${messageKey} = '${key}' AND ${nextRetryAt} <= NOW(3)`,
      );
      if ((rows as unknown[]).length > 0) return at;
    }
    return undefined;
  }

  test("is never over early, about either change of the clock, and at most an hour late", {
    timeout: 300_000,
  }, async () => {
    const { back, forward } = changesAhead();
    expect(back).toBeGreaterThan(0);
    expect(forward).toBeGreaterThan(0);
    const targets = [back, forward].flatMap((change) =>
      [-75, -45, -15, 15, 45, 75, 135].map((minutes) => ({ change, target: change + minutes * MINUTE_MS })),
    );
    for (const layout of [tLocalMessageLayout, messageTableLayout]) {
      const outbox = createOutbox({ database, layout });
      const admin = database.messageAdmin({ layout });
      const rows = [];
      for (const { change, target } of targets) {
        const by = { type: "t", topic: "orders", body: {} };
        const [at, delay, suspended] = [`at:${target}`, `delay:${target}`, `suspended:${target}`];
        await outbox.transaction((tx) =>
          outbox.enqueue(tx, [
            { ...by, key: at, deliverAt: new Date(target) },
            { ...by, key: delay, delayMs: target - Date.now() },
            { ...by, key: suspended },
          ]),
        );
        await admin.suspend({
          filter: { key: suspended },
          action: { author: "a", reason: "b" },
          limit: 10,
          untilMs: target - Date.now(),
        });
        for (const key of [at, delay, suspended]) rows.push({ key, change, target });
      }
      await admin.close();
      for (const { key, change, target } of rows) {
        const due = (await dueAt(layout, key, target)) ?? Number.POSITIVE_INFINITY;
        const late = due - target;
        const what = `${layout.name} ${key} ${(target - change) / MINUTE_MS} min from the change`;
        expect(late, what).toBeGreaterThanOrEqual(0);
        // The hour that comes twice cannot be told apart; elsewhere a step of the look, and the
        // time that a statement takes.
        const isRepeated = change === back && target >= back && target < back + HOUR_MS;
        expect(late, what).toBeLessThanOrEqual(isRepeated ? HOUR_MS + 10 * MINUTE_MS : 10 * MINUTE_MS);
      }
    }
  });

  test("is what the relay warns of at its start, once, with the zone", async () => {
    const told: unknown[] = [];
    const logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: (text: string, fields?: object) => void told.push([text, fields]),
      error: (text: string, fields?: object) => void told.push([text, fields]),
    };
    const relay = createRelay({ database, broker: memory(), layout: messageTableLayout, logger });
    await relay.tick();
    await relay.stop();
    expect(told).toContainEqual([
      "the instants of this table are in a zone with daylight saving",
      { zone: expect.stringMatching(/^CES?T$/) },
    ]);
  });
});
