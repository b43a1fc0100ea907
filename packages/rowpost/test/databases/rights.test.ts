/** The GRANTs of docs/rights.md, each list with a user who has nothing else. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { reconcile } from "../../src/admin/reconcile/reconcile.ts";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { describeWithService } from "../services.ts";
import { createGrantedDatabase, type GrantedDatabase, grants } from "./granted-users.ts";

const message = (key: string) => ({ type: "t", key, topic: "orders", body: {} });

describeWithService(["mariadb", "mysql9", "postgres"], "rights", ({ name: service }) => {
  const engine = service === "postgres" ? "postgres" : "mysql";
  let made: GrantedDatabase;
  let owner: Database;

  beforeEach(async () => {
    made = await createGrantedDatabase(service);
    owner = made.owner;
  });

  afterEach(() => made.drop());

  const sql = (text: string): Promise<void> => made.sql(text);
  const user = async (role: string, rights: readonly string[]): Promise<Database> =>
    (await made.user(role, rights)).database;

  test("shop enqueues, also duplicates and several; relay publishes and archives; a consumer confirms; operator does the rest", async () => {
    const shop = await user("shop", grants(engine, "shop"));
    const outbox = createOutbox({ database: shop });
    await outbox.transaction((tx) => outbox.enqueue(tx, [message("a"), message("b")]));
    const ignored = outbox.transaction((tx) =>
      outbox.enqueue(tx, [message("b"), message("c")], { onDuplicate: "ignore" }),
    );
    expect(await ignored).toEqual(["duplicate", "enqueued"]);
    const twice = outbox.transaction((tx) => outbox.enqueue(tx, [message("d"), message("c")]));
    await expect(twice).rejects.toMatchObject({ code: "DUPLICATE_MESSAGE" });

    const tools = await user("operator", grants(engine, "operator"));
    const operator = tools.messageAdmin({ layout: owner.defaultLayout });
    const businessQuery = "SELECT 'a' AS message_key";
    const to = new Date(Date.now() + 60_000);
    const compared = {
      database: tools,
      types: ["t"],
      businessQuery,
      to,
      keptForMs: 86_400_000,
      onFinding: () => undefined,
    };
    expect((await reconcile(compared)).counts).toMatchObject({ "no-message": 0, "no-business-row": 2 });
    const action = { author: "ops", reason: "test" };
    expect((await operator.list({ filter: {}, limit: 10 })).messages).toHaveLength(3);
    const suspended = { filter: { key: "c" }, action, limit: 10 };
    expect((await operator.suspend(suspended)).changed).toBe(1);
    expect((await operator.changeMany({ kind: "resume", filter: { key: "c" }, action })).changed).toBe(1);
    await operator.suspendScope({ scope: "topic", value: "none", ...action, endsInMs: null });
    await operator.resumeScope({ scope: "topic", value: "none", action });
    const [c] = (await operator.list({ filter: { key: "c" }, limit: 1 })).messages;
    const seen = { id: c?.id ?? "", lockVersion: c?.lockVersion ?? "0" };
    const copy = await operator.copy({ seen, change: { key: "c~2" }, original: "keep", action });
    expect(copy.copyId).toBeDefined();
    await operator.status();
    await operator.close();
    const console = tools.operations({ layout: owner.defaultLayout });
    await console.openSession({ hash: "a".repeat(64), holder: "{}", lifeMs: 60_000 });
    expect(await console.readSession("a".repeat(64), 60_000)).toBe("{}");
    await console.endSession("a".repeat(64));
    await console.estimate();
    expect(await console.audit({ filter: {}, limit: 10 })).toHaveLength(8);
    await console.close();
    const given = await user("consumer", grants(engine, "consumer"));
    const types = [{ name: "t", confirm: { consumers: ["billing", "stock"] } }];
    const [all, named] = [createOutbox({ database: given }), createOutbox({ database: given, types })];
    const identity = { type: "t", key: "a", consumer: "billing" };
    expect(await named.confirm([identity])).toMatchObject([{ status: "waiting" }]);
    expect(await all.confirm([{ ...identity, error: "no" }, identity, { ...identity, key: "z" }])).toMatchObject([
      { status: "outdated" },
      { status: "consumed" },
      { status: "unknown", kept: true },
    ]);

    const database = await user("relay", grants(engine, "relay"));
    const broker = memory();
    const retention = { onSent: "archive", keepMs: 0, archiveForMs: 0 } as const;
    const problems: string[] = [];
    const told = (text: string, fields?: object): void => void problems.push(`${text} ${JSON.stringify(fields)}`);
    const logger = { debug: () => undefined, info: () => undefined, warn: told, error: told };
    const relay = createRelay({ database, broker, retention, logger });
    await relay.tick();
    await relay.tick();
    await relay.stop();
    expect(broker.published("orders").map(({ key }) => key)).toEqual(["b", "c", "c~2"]);
    expect(problems).toEqual([]);
    // A relay with --alerts: what its evaluator does at a look.
    const layout = { layout: owner.defaultLayout };
    const [alerts, status] = [database.alerts(layout), database.messageAdmin(layout)];
    const lease = { owner: "a".repeat(36), leaseMs: 60_000 };
    expect(await alerts.take(lease)).toBeDefined();
    await alerts.late({ unconfirmedMs: 60_000, sendingMs: 90_000 });
    expect([await alerts.silences(), await alerts.hasQueue()]).toEqual([[], false]);
    await status.status();
    expect(await alerts.save({ ...lease, state: "{}" })).toBe(true);
    await alerts.release(lease.owner);
    await Promise.all([alerts, status].map((each) => each.close()));
    const left = await owner.transaction((tx) => tx.query("SELECT id FROM local_message"));
    expect(left).toEqual([]);
  });

  test("a right that is missing is told as such, and never as a missing table", async () => {
    const nobody = await user("nobody", []);
    const options = { sendingMark: "on", statementTimeoutMs: 5_000, lockWaitTimeoutMs: 1_000 } as const;
    const store = nobody.relayStore({ layout: owner.defaultLayout });
    await expect(store.open(options)).rejects.toMatchObject({
      code: "PERMISSION",
      message: expect.stringMatching(/local_message/),
    });
    await store.close();
    const outbox = createOutbox({ database: nobody });
    const enqueued = outbox.transaction((tx) => outbox.enqueue(tx, message("a")));
    await expect(enqueued).rejects.toMatchObject({
      code: "PERMISSION",
      message: expect.stringMatching(/^(?!.*migrate)/),
    });
    await sql("DROP TABLE local_message_relay");
    await sql("DROP TABLE local_message");
    const gone = createOutbox({ database: owner });
    const lost = gone.transaction((tx) => gone.enqueue(tx, message("a")));
    await expect(lost).rejects.toMatchObject({ code: "SCHEMA", message: expect.stringMatching(/rowpost migrate/) });
  });
});
