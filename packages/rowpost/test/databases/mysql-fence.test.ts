/**
 * Rules: takeover-fence, claim-token on MySQL and MariaDB: what two sessions can do to each other,
 * made to happen.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { defaultLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { DatabaseUnavailableError } from "../../src/runtime/errors.ts";
import { describeWithService } from "../services.ts";
import {
  claimedTokens,
  fenceOf,
  lockWait,
  MYSQL_SERVICES,
  type MysqlFixture,
  mysqlFixture,
  scanAll,
  scannedTokens,
  takeAll,
} from "./mysql-setup.ts";

describeWithService(MYSQL_SERVICES, "fence", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, defaultLayout);
  });
  afterAll(() => fixture.drop());
  beforeEach(async () => {
    await fixture.plain.query("DELETE FROM local_message");
    await fixture.enqueue({ key: "a" }, { key: "b" }, { key: "c" });
  });

  test("a takeover waits for a claim that waits for a row, and then recovers what it has marked", async () => {
    const [old, next] = [await fixture.openStore(), await fixture.openStore()];
    const fence = await takeAll(old, "old");
    const rows = await scanAll(old);
    const user = await fixture.connect();
    await user.query("BEGIN");
    // The first row of the claim, so that it holds no lock of another shard yet when it waits.
    await user.query("SELECT id FROM local_message WHERE id = ? FOR UPDATE", [rows[0]?.id]);
    const claim = old.claim({ fence, rows: scannedTokens(rows) });
    await lockWait(fixture.plain, "local_message_shard");

    const takeover = takeAll(next, "next");
    // With a sub-query as the fence the takeover would be through before the lock is gone, and the
    // claim would still mark its rows.
    const first = await Promise.race([
      takeover.then(() => "takeover"),
      lockWait(fixture.plain, "local_message_shard", 2).then(() => "waits"),
    ]);
    expect(first).toBe("waits");
    await user.query("COMMIT");
    await Promise.all([claim, takeover]);
    const states = await fixture.plain.query("SELECT DISTINCT state AS state FROM local_message");
    expect(states).toEqual([{ state: 0 }]);
  });

  test("the same with a sub-query as the fence marks rows of a lost shard: the interleaving is real", async () => {
    const [old, next] = [await fixture.openStore(), await fixture.openStore()];
    const fence = await takeAll(old, "old");
    const rows = await scanAll(old);
    const [user, claimer] = [await fixture.connect(), await fixture.connect()];
    await user.query("BEGIN");
    await user.query("SELECT id FROM local_message WHERE id = ? FOR UPDATE", [rows[0]?.id]);
    await claimer.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    const claim = claimer.query(
      `UPDATE local_message SET state = 1 WHERE id IN (?) AND state = 0 AND EXISTS (
         SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = ? AND owner = 'old' AND epoch = ?)`,
      [rows.map(({ id }) => id), rows[0]?.shard, fence.epochs[rows[0]?.shard ?? 0]],
    );
    await lockWait(fixture.plain, "EXISTS");
    await takeAll(next, "next");
    await user.query("COMMIT");
    await claim;
    const states = await fixture.plain.query("SELECT DISTINCT state AS state FROM local_message");
    expect(states).toEqual([{ state: 1 }]);
  });

  test("after a takeover the old owner changes nothing", async () => {
    const [old, next] = [await fixture.openStore(), await fixture.openStore()];
    const fence = await takeAll(old, "old");
    const rows = scannedTokens(await scanAll(old));
    expect(await old.claim({ fence, rows })).toBe(3);
    const claimed = claimedTokens(rows, fixture.layout);
    await takeAll(next, "next");

    expect(await old.claim({ fence, rows: scannedTokens(await scanAll(old)) })).toBe(0);
    expect(await old.verifyClaim({ fence, rows: claimed })).toEqual([]);
    expect(await old.housekeeping.recover({ fence, rows: claimed })).toBe(0);
    expect(await old.housekeeping.park({ fence, rows: scannedTokens(await scanAll(old)), parkMs: 1_000 })).toBe(0);
    const outcomes = claimed.map((row) => ({
      ...row,
      toState: "sent" as const,
      messageId: "m",
      retryDelta: 0 as const,
      deliveryDelta: 0 as const,
      nextRetryInMs: null,
      failReason: null,
    }));
    const unmatched = await old.settle({ fence, outcomes, elapsedMs: 1, from: "sending" });
    expect(unmatched.map(({ state }) => state)).toEqual(["pending", "pending", "pending"]);
    const held = fence.epochs.flatMap((epoch, shard) => (epoch === undefined ? [] : [{ shard, epoch }]));
    const view = await old.leases.heartbeat({ owner: "old", label: "", leaseMs: 1, instanceTimeoutMs: 1, held });
    expect(view.held).toEqual([]);
  });

  test("an epoch of an earlier acquisition of one's own does not count", async () => {
    const store = await fixture.openStore();
    const before = await takeAll(store, "same");
    await takeAll(store, "same");
    expect(await store.claim({ fence: before, rows: scannedTokens(await scanAll(store)) })).toBe(0);
  });

  test("of two that take the same observed shard one gets it", async () => {
    const [one, two] = [await fixture.openStore(), await fixture.openStore()];
    const { leases } = await one.leases.heartbeat({
      owner: "one",
      label: "",
      leaseMs: 1,
      instanceTimeoutMs: 1,
      held: [],
    });
    const taken = await Promise.all([
      one.leases.acquire({ owner: "one", leaseMs: 1_000, observed: leases }),
      two.leases.acquire({ owner: "two", leaseMs: 1_000, observed: leases }),
    ]);
    expect(taken.map(({ acquired }) => acquired.length).sort((left, right) => left - right)).toEqual([0, 16]);
    const winner = taken[0].acquired.length === 16 ? one : two;
    const owner = winner === one ? "one" : "two";
    const fence = fenceOf(owner, [...taken[0].acquired, ...taken[1].acquired]);
    expect(await winner.claim({ fence, rows: scannedTokens(await scanAll(winner)) })).toBe(3);
  });

  test("a row that somebody holds keeps its neighbors from nothing", async () => {
    const store = await fixture.openStore();
    const fence = await takeAll(store, "me");
    const rows = await scanAll(store);
    const user = await fixture.connect();
    await user.query("BEGIN");
    await user.query("SELECT id FROM local_message WHERE id = ? FOR UPDATE", [rows[1]?.id]);
    expect(await store.claim({ fence, rows: scannedTokens(rows) })).toBe(2);
    const claimed = claimedTokens(scannedTokens(rows), fixture.layout);
    expect(await store.verifyClaim({ fence, rows: claimed })).toEqual([rows[0]?.id, rows[2]?.id]);
    await user.query("ROLLBACK");
  });

  test("a user who holds a row in flight does not keep its shard from being taken over", async () => {
    const [old, next] = [await fixture.openStore(), await fixture.openStore()];
    const fence = await takeAll(old, "old");
    const rows = scannedTokens(await scanAll(old));
    await old.claim({ fence, rows });
    const user = await fixture.connect();
    await user.query("BEGIN");
    await user.query("SELECT id FROM local_message WHERE id = ? FOR UPDATE", [rows[1]?.id]);
    const taken = await takeAll(next, "next");
    expect(taken.epochs.filter((epoch) => epoch !== undefined)).toHaveLength(16);
    const left = await next.housekeeping.listSending({ shards: undefined, limit: 10 });
    expect(left.map(({ id }) => id)).toEqual([rows[1]?.id]);
    await user.query("ROLLBACK");
    expect(await next.housekeeping.recover({ fence: taken, rows: left })).toBe(1);
  });

  test("an abandoned session has no effect any more, also when its statement was waiting", async () => {
    const session = await fixture.database.connect({
      purpose: "relay",
      lockWaitTimeoutMs: 60_000,
      statementTimeoutMs: 60_000,
    });
    const user = await fixture.connect();
    await user.query("BEGIN");
    await user.query("SELECT id FROM local_message FOR UPDATE");
    const update = session.run({ name: "late", text: "UPDATE local_message SET topic = 'late'", params: [] });
    const outcome = update.then(
      () => "done",
      (error: unknown) => error,
    );
    await lockWait(fixture.plain, "'late'");
    await session.abandon();
    expect(session.dead).toBe(true);
    expect(await outcome).toBeInstanceOf(DatabaseUnavailableError);
    await user.query("COMMIT");
    expect(await fixture.plain.query("SELECT DISTINCT topic AS topic FROM local_message")).toEqual([
      { topic: "orders" },
    ]);
    await expect(session.run({ name: "after", text: "SELECT 1", params: [] })).rejects.toBeInstanceOf(
      DatabaseUnavailableError,
    );
  });

  test("a statement without an answer in time kills its session", async () => {
    const session = await fixture.database.connect({ purpose: "relay", statementTimeoutMs: 100 });
    await expect(session.run({ name: "slow", text: "SELECT SLEEP(5)", params: [] })).rejects.toBeInstanceOf(
      DatabaseUnavailableError,
    );
    expect(session.dead).toBe(true);
    await session.abandon();
  });
});

describeWithService("mariadb", "sessions of a table without a claim token", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, tLocalMessageLayout);
  });
  afterAll(() => fixture.drop());

  test("a lost session is dead on the server before the next one does anything", async () => {
    await fixture.enqueue({ key: "a" });
    const store = fixture.database.relayStore({ layout: tLocalMessageLayout });
    await store.open({ sendingMark: "on", statementTimeoutMs: 2_000, lockWaitTimeoutMs: 60_000 });
    const fence = await takeAll(store, "me");
    const rows = scannedTokens(await scanAll(store));
    await store.claim({ fence, rows });
    const user = await fixture.connect();
    await user.query("BEGIN");
    await user.query("SELECT id FROM t_local_message FOR UPDATE");
    const settle = (toState: "pending" | "sent"): Promise<unknown> =>
      store.settle({
        fence,
        outcomes: rows.map((row) => ({
          ...row,
          toState,
          messageId: null,
          retryDelta: 0,
          deliveryDelta: 0,
          nextRetryInMs: null,
          failReason: null,
        })),
        elapsedMs: 0,
        from: "sending",
      });
    // Waits for the user's lock on the server, while the client has given up.
    await expect(settle("pending")).rejects.toBeInstanceOf(DatabaseUnavailableError);
    const second = settle("sent");
    // The new session has got as far as the lock: by then the old statement is gone, or it would
    // come first when the lock is given up.
    await lockWait(fixture.plain, "message_id");
    await user.query("COMMIT");
    expect(await second).toEqual([]);
    expect(await fixture.plain.query("SELECT status AS state FROM t_local_message")).toEqual([{ state: 2 }]);
    await store.close();
  });
});
