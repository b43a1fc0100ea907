/**
 * What an administrator's settings, rights, policies and triggers do on PostgreSQL: nothing is
 * written where it must not be, and nothing is lost without a word.
 */
import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox, createRelay, type Relay } from "../../src/index.ts";
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";
import { describeWithService } from "../services.ts";
import { type PostgresFixture, postgresFixture } from "./postgres-setup.ts";

describeWithService("postgres", "an administrator's database", () => {
  let fixture: PostgresFixture;
  let admin: pg.Client;
  let name: string;
  const role = `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  beforeAll(async () => {
    fixture = await postgresFixture();
    admin = await fixture.client();
    name = new URL(fixture.url).pathname.slice(1);
    await admin.query(`CREATE ROLE ${role} LOGIN`);
    await admin.query("CREATE TABLE orders (id int)");
  });
  afterAll(async () => {
    await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await fixture.drop();
  });
  beforeEach(async () => {
    await admin.query("DELETE FROM local_message");
  });

  const message = (key: string) => ({ type: "order", key, topic: "orders", body: {} });
  const byRole = (): string => Object.assign(new URL(fixture.url), { username: role }).href;
  const keys = async () =>
    (await admin.query<{ key: string }>("SELECT message_key AS key FROM local_message ORDER BY id")).rows.map(
      ({ key }) => key,
    );

  test("before a switchover, when default_transaction_read_only is on, a relay waits, says why, and goes on after it", async () => {
    const broker = memory();
    let relay: Relay | undefined;
    const refused = new Promise<void>((resolve) => {
      const error = (_text: string, fields?: object): void => {
        if (/takes no writes/.test(JSON.stringify(fields))) resolve();
      };
      const logger = { debug() {}, info() {}, warn() {}, error };
      relay = createRelay({ database: fixture.database, broker, logger });
    });
    await relay?.start();
    try {
      await admin.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^rowpost' AND datname = current_database()",
      );
      await admin.query(
        "INSERT INTO local_message (message_type, message_key, topic, message_body) VALUES ('order', '1', 'orders', '{}')",
      );
      await refused;
      expect(broker.published()).toEqual([]);
      const { rows } = await admin.query("SELECT state, delivery_count FROM local_message");
      expect(rows).toEqual([{ state: 0, delivery_count: 0 }]);
      await admin.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
      await broker.waitFor(1, { withinMs: 15_000 });
    } finally {
      await admin.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
      await relay?.stop();
    }
  });

  test("who may only insert and select can enqueue, also what is there already", async () => {
    await admin.query(`GRANT INSERT, SELECT ON local_message TO ${role}`);
    const database = postgres({ url: byRole() });
    const outbox = createOutbox({ database });
    try {
      await outbox.transaction((tx) => outbox.enqueue(tx, message("1")));
      await outbox.transaction((tx) => outbox.enqueue(tx, [message("1"), message("2")], { onDuplicate: "ignore" }));
      await expect(outbox.transaction((tx) => outbox.enqueue(tx, message("1")))).rejects.toMatchObject({
        code: "DUPLICATE_MESSAGE",
      });
    } finally {
      await database.close();
    }
    expect(await keys()).toEqual(["1", "2"]);
  });

  test("a message that a trigger swallows is not called a duplicate", async () => {
    await admin.query(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.message_key = 'swallowed' THEN RETURN NULL; END IF;
  RETURN NEW; END $$;
CREATE TRIGGER swallow BEFORE INSERT ON local_message FOR EACH ROW EXECUTE FUNCTION swallow()`);
    const outbox = createOutbox({ database: fixture.database });
    const both = [message("kept"), message("swallowed")];
    try {
      await outbox.transaction(async (tx) => {
        for (const onDuplicate of ["ignore", "throw"] as const) {
          await expect(outbox.enqueue(tx, both, { onDuplicate })).rejects.toMatchObject({
            code: "SCHEMA",
            message: expect.stringMatching(/order:swallowed.*trigger/),
          });
        }
      });
      expect(await keys()).toEqual([]);
    } finally {
      await admin.query("DROP TRIGGER swallow ON local_message");
    }
  });

  test("a relay whose role a policy keeps from rows says so, and does not pass them over", async () => {
    await admin.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role};
ALTER TABLE local_message ENABLE ROW LEVEL SECURITY;
CREATE POLICY most ON local_message USING (message_key <> 'hidden')`);
    const database = postgres({ url: byRole() });
    try {
      await createOutbox({ database: fixture.database }).transaction((tx) =>
        createOutbox({ database: fixture.database }).enqueue(tx, [message("hidden"), message("seen")]),
      );
      await expect(createRelay({ database, broker: memory() }).tick()).rejects.toThrow(
        /row-level security policy for table "local_message".*BYPASSRLS/,
      );
    } finally {
      await database.close();
      await admin.query("DROP POLICY most ON local_message; ALTER TABLE local_message DISABLE ROW LEVEL SECURITY");
    }
  });

  test("a COMMIT that nobody answers ends after the pool's time, with its outcome unknown", async () => {
    const server = new URL(fixture.url);
    const proxy = await createTcpProxy({ target: { host: server.hostname, port: Number(server.port || 5432) } });
    const connectionString = Object.assign(server, { hostname: proxy.host, port: String(proxy.port) }).href;
    const database = postgres({ options: { connectionString, query_timeout: 300 } });
    try {
      const work = database.transaction(async (tx) => {
        await tx.query("INSERT INTO orders VALUES (1)");
        proxy.mute();
      });
      await expect(work).rejects.toMatchObject({
        code: "DATABASE_UNAVAILABLE",
        message: expect.stringMatching(/COMMIT got no answer/),
      });
    } finally {
      await proxy.close();
      await database.close();
    }
  });
});
