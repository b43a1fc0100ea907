/**
 * Programs of other languages insert by SQL, and PostgreSQL takes infinite instants: such a row
 * must not stop the good ones beside it.
 */
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { spelled } from "../../src/databases/sql/cold.ts";
import { countByState } from "../../src/databases/sql/insight/statements.ts";
import { createLayout } from "../../src/databases/sql/layouts.ts";
import { pickAll } from "../../src/databases/sql/past-refused.ts";
import type { ScannedMessage } from "../../src/relay/store.ts";
import { describeWithService } from "../services.ts";
import { type PostgresFixture, postgresFixture } from "./postgres-setup.ts";

const AGES = 60_000;

describeWithService("postgres", "infinite instants", () => {
  let fixture: PostgresFixture;
  let user: pg.Client;

  beforeAll(async () => {
    fixture = await postgresFixture();
    user = await fixture.client();
  });
  afterAll(() => fixture.drop());
  beforeEach(async () => {
    await user.query("TRUNCATE local_message");
    await put("good", {});
  });

  async function put(key: string, values: Readonly<Record<string, string>>): Promise<void> {
    const names = Object.keys(values);
    await user.query(
      `INSERT INTO local_message (${["message_type", "message_key", "topic", "message_body", ...names].join(", ")})
VALUES ('t', $1, 'orders', '{}'${names.map((_, index) => `, $${index + 2}`).join("")})`,
      [key, ...Object.values(values)],
    );
  }

  async function scan(layout = fixture.layout): Promise<ScannedMessage[]> {
    const store = fixture.database.relayStore({ layout });
    try {
      return await store.scan({
        shards: undefined,
        afterId: "0",
        bodyLimit: Number.MAX_SAFE_INTEGER,
        immediateLimit: 10,
        dueLimit: 10,
      });
    } finally {
      await store.close();
    }
  }

  test("what was due for ever is sent, what is never due is not, and the others go", async () => {
    await put("delivered long ago", { deliver_at: "-infinity" });
    await put("retried long ago", { deliver_at: "-infinity", next_retry_at: "-infinity" });
    await put("created long ago", { gmt_create: "-infinity" });
    await put("created never", { gmt_create: "infinity" });
    await put("delivered never", { deliver_at: "infinity" });
    await put("retried never", { next_retry_at: "infinity" });
    await put("retried, and delivered never", { deliver_at: "infinity", next_retry_at: "-infinity" });
    const found = new Map((await scan()).map((row) => [row.key, row]));
    const sent = ["created long ago", "created never", "delivered long ago", "good"];
    expect([...found.keys()].sort()).toEqual([...sent, "retried long ago", "retried, and delivered never"]);
    expect(found.get("created long ago")?.waitingMs).toBeGreaterThan(AGES);
    expect(found.get("created never")?.waitingMs).toBe(0);
    expect(found.get("retried, and delivered never")).toMatchObject({ waitingMs: 0 });
    expect(found.get("good")?.waitingMs).toBeLessThan(AGES);
  });

  test("a table without deliver_at is scanned as well", async () => {
    await put("retried long ago", { next_retry_at: "-infinity" });
    await put("created long ago", { gmt_create: "-infinity" });
    const layout = createLayout({ columns: { deliverAt: undefined } });
    expect((await scan(layout)).map(({ key }) => key).sort()).toEqual(["created long ago", "good", "retried long ago"]);
  });

  test("housekeeping, the gauges and the operator's view go on", async () => {
    const { housekeeping, table } = fixture.statements;
    const session = await fixture.session();
    const states = { pending: 0, sending: 1, sent: 2, failed: 3, consumed: 4, suspended: 5 };
    for (const [name, state] of Object.entries(states)) {
      const old = { gmt_create: "-infinity", gmt_modified: "-infinity", deliver_at: "-infinity", sent_at: "-infinity" };
      await put(`${name} long ago`, { ...old, state: String(state), next_retry_at: "-infinity" });
      await put(`${name} never`, { gmt_create: "infinity", gmt_modified: "infinity", state: String(state) });
    }
    for (const statement of [
      housekeeping.gauges(10_000),
      housekeeping.listTimed(10),
      housekeeping.listSending({ shards: undefined, limit: 10 }),
      housekeeping.failUnknownStates(["1"]),
      housekeeping.resetBackoff({ topic: "orders", limit: 10, stepMs: 5, ...pickAll(10) }),
      housekeeping.lockFinished({ state: "sent", olderThanMs: 5, afterId: "0", limit: 10 }),
      spelled(table.words, countByState(table)),
    ]) {
      await session.run(statement);
    }
    const messages = fixture.database.messageAdmin({ layout: fixture.layout });
    try {
      expect((await messages.status({ exact: true })).counts).toHaveLength(6);
      const { messages: all } = await messages.list({ filter: {}, limit: 50 });
      expect(all).toHaveLength(13);
      const { gmtCreate, deliverAt } = all.find(({ key }) => key === "sent long ago") ?? {};
      expect([gmtCreate, deliverAt]).toEqual(["-infinity", "-infinity"]);
      expect(all.find(({ key }) => key === "sent never")?.gmtCreate).toBe("infinity");
    } finally {
      await messages.close();
    }
  });
});
