/**
 * Tables that change under prepared statements on PostgreSQL: it refuses a statement whose columns
 * have got another type (0A000) for as long as the connection lives, and one that DISCARD took away
 * (26000).
 */
import pg from "pg";
import createSql from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox } from "../../src/index.ts";
import { createRelay } from "../../src/relay/relay.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { type PostgresFixture, postgresFixture } from "./postgres-setup.ts";

const sql = (text: string, params: readonly unknown[] = []): Statement => ({ name: "test", text, params });

describeWithService("postgres", "a table that is altered", () => {
  let fixture: PostgresFixture;
  let user: pg.Client;
  beforeAll(async () => {
    fixture = await postgresFixture();
    user = await fixture.client();
    await user.query("CREATE TABLE widened AS SELECT 'a'::varchar(10) AS a");
  });
  afterAll(() => fixture.drop());

  const insert = (key: string) =>
    user.query(
      "INSERT INTO local_message (message_type, message_key, topic, message_body) VALUES ('t', $1, 'orders', '{}')",
      [key],
    );

  test("a running relay goes on, with the sessions that it has, and says nothing", async () => {
    const lines: unknown[] = [];
    const note = (...line: unknown[]): void => void lines.push(line);
    const broker = memory();
    const relay = createRelay({
      database: fixture.database,
      broker,
      logger: { debug() {}, info() {}, warn: note, error: note },
    });
    const backends = async () => {
      const { rows } = await user.query(
        "SELECT pid, application_name AS name FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('rowpost lease', 'rowpost relay') ORDER BY pid",
      );
      return rows;
    };
    try {
      await relay.start();
      // Twice, so that every statement of the way is prepared.
      for (const count of [1, 2]) {
        await insert(`before ${count}`);
        await broker.waitFor(count);
      }
      await expect.poll(async () => (await user.query("SELECT 1 FROM local_message WHERE state = 2")).rowCount).toBe(2);
      const before = await backends();
      await user.query(`ALTER TABLE local_message ALTER COLUMN message_key TYPE varchar(200),
  ALTER COLUMN topic TYPE varchar(300), ALTER COLUMN fail_reason TYPE text`);
      await user.query("ALTER TABLE local_message_shard ALTER COLUMN owner TYPE varchar(99)");
      await insert("after");
      await broker.waitFor(3);
      await expect.poll(async () => (await user.query("SELECT 1 FROM local_message WHERE state = 2")).rowCount).toBe(3);
      expect(await backends()).toEqual(expect.arrayContaining(before));
    } finally {
      await relay.stop();
    }
    expect(lines).toEqual([]);
  });

  test("a statement is prepared anew, once, and one that never fits is refused with the server's words", async () => {
    const session = await fixture.session();
    const read = sql("SELECT a FROM widened WHERE a <> $1", ["x"]);
    await session.run(read);
    await user.query("ALTER TABLE widened ALTER COLUMN a TYPE varchar(20)");
    expect((await session.run(read)).rows).toEqual([{ a: "a" }]);
    await session.run(sql("DISCARD ALL"));
    expect((await session.run(read)).rows).toEqual([{ a: "a" }]);
    const never = sql("SELECT a, count(*) OVER () FROM widened WHERE a <> $1 FOR UPDATE", ["x"]);
    await expect(session.run(never)).rejects.toThrow(/FOR UPDATE is not allowed with window functions/);
    expect(session.dead).toBe(false);
  });

  test("within a transaction it is a conflict: nothing was done, and the next try fits", async () => {
    const session = await fixture.session();
    const write = sql("UPDATE widened SET a = $1 RETURNING a", ["b"]);
    await session.run(write);
    await user.query("ALTER TABLE widened ALTER COLUMN a TYPE varchar(30)");
    const work = () => session.transaction(async (tx) => (await tx.run(write)).rows);
    await expect(work()).rejects.toMatchObject({ code: "DATABASE_CONFLICT", retriable: true });
    expect(await work()).toEqual([{ a: "b" }]);
  });

  test("enqueue with prepared statements goes on, on connections that are in use", async () => {
    const pool = new pg.Pool({ connectionString: fixture.url, max: 1 });
    const shared = createSql(fixture.url, { max: 1, onnotice: () => {} });
    const outbox = createOutbox({ database: postgres({ pool, prepare: true }) });
    const enqueue = async (key: string) => {
      for (const [name, on] of Object.entries({ pool, shared })) {
        const message = { type: "t", key: `${key} ${name}`, topic: "orders", body: {} };
        await outbox.transaction(on, (tx) => outbox.enqueue(tx, message));
        await outbox.transaction(on, (tx) => outbox.enqueue(tx, message, { onDuplicate: "ignore" }));
      }
    };
    try {
      await enqueue("before");
      await user.query(`ALTER TABLE local_message ALTER COLUMN message_key TYPE varchar(240),
  ALTER COLUMN message_type TYPE varchar(240)`);
      await enqueue("after");
    } finally {
      await pool.end();
      await shared.end();
    }
    const { rows } = await user.query(
      "SELECT count(*)::int AS n FROM local_message WHERE message_key ~ '(pool|shared)$'",
    );
    expect(rows).toEqual([{ n: 4 }]);
  });
});
