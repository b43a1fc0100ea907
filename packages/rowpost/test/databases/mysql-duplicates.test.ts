/**
 * A duplicate that is ignored locks nothing that another transaction needs: idempotent retries run
 * inside long business transactions.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { DuplicateMessageError } from "../../src/runtime/errors.ts";
import { describeWithService } from "../services.ts";
import { lockWait, MYSQL_SERVICES, type MysqlFixture, message, mysqlFixture } from "./mysql-setup.ts";

const LOCK_TIMEOUT = 1205;
/** Of another type, behind what is there: MariaDB locks the gap in front of a duplicate. */
const NEW_KEYS = ["b", "z"];

describeWithService(MYSQL_SERVICES, "ignored duplicates", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, defaultLayout);
    await fixture.enqueue({ key: "order-1" }, { key: "order-2" }, { key: "order-3" });
  });
  afterAll(() => fixture.drop());

  const writer = () => fixture.database.messageWriter({ layout: fixture.layout });

  /**
   * Enqueues in a transaction that is rolled back, with a lock wait of a second; the keys of which
   * each gave up waiting.
   */
  async function heldUp(keys: readonly string[]): Promise<string[]> {
    const other = await fixture.connect();
    await other.query("SET SESSION innodb_lock_wait_timeout = 1");
    const stuck: string[] = [];
    for (const key of keys) {
      await other.query("BEGIN");
      const tx = fixture.database.executor(other.handle);
      await writer()
        .insert(tx, [message({ type: "shipment.created", key })], { duplicates: "throw" })
        .catch((error: { errno?: number }) => {
          if (error.errno !== LOCK_TIMEOUT) throw error;
          stuck.push(key);
        });
      await other.query("ROLLBACK");
    }
    return stuck;
  }

  for (const keys of [["order-2"], ["order-1", "order-2", "order-3"]]) {
    test(`others enqueue while a transaction is open that has ignored ${keys.length}`, async () => {
      await fixture.database.transaction(async (tx) => {
        const messages = keys.map((key) => message({ key }));
        expect(await writer().insert(tx, messages, { duplicates: "ignore" })).toEqual(keys.map(() => "duplicate"));
        expect(await heldUp(NEW_KEYS)).toEqual([]);
      });
    });
  }

  test("a row that was removed after the snapshot is written again", async () => {
    await fixture.enqueue({ key: "removed" });
    await fixture.database.transaction(async (tx) => {
      await tx.query("SELECT COUNT(*) AS n FROM local_message");
      await fixture.plain.query("DELETE FROM local_message WHERE message_key = 'removed'");
      const again = [message({ key: "removed" }), message({ key: "order-1" })];
      expect(await writer().insert(tx, again, { duplicates: "ignore" })).toEqual(["enqueued", "duplicate"]);
    });
    const rows = await fixture.plain.query("SELECT id FROM local_message WHERE message_key = 'removed'");
    expect(rows).toHaveLength(1);
  });

  test("what another transaction has written and then takes back is no duplicate, whatever the isolation", async () => {
    for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
      const [first, second] = [await fixture.connect(), await fixture.connect()];
      const key = `taken-back-${level}`;
      await first.query("BEGIN");
      await writer().insert(fixture.database.executor(first.handle), [message({ key })], { duplicates: "throw" });
      await second.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
      await second.query("BEGIN");
      const tx = fixture.database.executor(second.handle);
      const waiting = writer().insert(tx, [message({ key })], { duplicates: "ignore" });
      await lockWait(fixture.plain, "local_message");
      await first.query("ROLLBACK");
      expect(await waiting, level).toEqual(["enqueued"]);
      await second.query("ROLLBACK");
    }
  });

  test("without ignore a call is one statement, with it one more", async () => {
    const names: string[] = [];
    await fixture.database.transaction(async (tx) => {
      const counted = {
        kind: tx.kind,
        run: (statement: Parameters<typeof tx.run>[0]) => {
          names.push(statement.name);
          return tx.run(statement);
        },
      };
      await writer().insert(counted, [message({ key: "one" })], { duplicates: "throw" });
      await writer().insert(counted, [message({ key: "two" })], { duplicates: "ignore" });
      await expect(writer().insert(counted, [message({ key: "one" })], { duplicates: "throw" })).rejects.toThrow(
        DuplicateMessageError,
      );
    });
    expect(names).toEqual(["insertMessage", "seeIdentities", "insertMessage", "insertMessage", "findIdentities"]);
  });
});
