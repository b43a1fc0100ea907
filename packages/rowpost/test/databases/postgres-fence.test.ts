/**
 * Rule: takeover-fence on PostgreSQL: what a claim, a takeover and a renewal can do to each other,
 * made to happen with the statements themselves. Where a guard is taken out of a statement, the
 * same interleaving must go wrong.
 */
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Session } from "../../src/databases/database.ts";
import type { Fence, RowToken, ShardLease } from "../../src/relay/store.ts";
import { nextVersion } from "../../src/runtime/next-version.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { endsOrWaits, type PostgresFixture, postgresFixture, waitingForLocks } from "./postgres-setup.ts";
import { sampleOutcome } from "./statement-samples.ts";

const FENCE_LOCK = "FOR KEY SHARE OF lease";

describeWithService("postgres", "fence", () => {
  let fixture: PostgresFixture;
  let relay: Session;
  let taker: Session;
  let user: pg.Client;
  let watcher: pg.Client;
  let rows: RowToken[];
  const fence: Fence = { owner: "old", epochs: Array.from({ length: 16 }, () => "1") };

  beforeAll(async () => {
    fixture = await postgresFixture();
    relay = await fixture.session({ lockWaitTimeoutMs: 20_000 });
    taker = await fixture.session({ lockWaitTimeoutMs: 20_000 });
    user = await fixture.client();
    watcher = await fixture.client();
    await relay.run(fixture.statements.leases.ensureShards());
  });
  afterAll(() => fixture.drop());
  beforeEach(async () => {
    await user.query("TRUNCATE local_message");
    await user.query("UPDATE local_message_shard SET owner = 'old', epoch = 1, lease_until = now(), in_flight = '{}'");
    await user.query(
      `INSERT INTO local_message (message_type, message_key, topic, message_body) SELECT 't', 'k' || g, 'orders', '{}' FROM generate_series(1, 8) g`,
    );
    const { rows: found } = await relay.run(
      fixture.statements.relay.scan({
        shards: undefined,
        afterId: "0",
        bodyLimit: Number.MAX_SAFE_INTEGER,
        immediateLimit: 100,
        dueLimit: 100,
      }),
    );
    rows = found.map((row) => ({
      id: String(row["id"]),
      shard: Number(row["shard"]),
      deliveryCount: 0,
      lockVersion: String(row["lock_version"]),
      identityHash: String(row["identity_hash"]),
    }));
    expect(rows).toHaveLength(8);
  });

  const claim = (): Statement => fixture.statements.relay.claim({ fence, rows });

  async function observe(): Promise<ShardLease[]> {
    const { rows: leases } = await taker.run(fixture.statements.leases.readLeases());
    return leases.map((row) => ({
      shard: Number(row["shard"]),
      owner: String(row["owner"]),
      epoch: String(row["epoch"]),
      leaseUntil: String(row["lease_until"]),
      leaseMs: 0,
    }));
  }

  /**
   * Takes every shard for a new owner and recovers, as the lease store does: two statements in one
   * transaction.
   */
  async function takeOver(): Promise<void> {
    const { leases } = fixture.statements;
    const observed = await observe();
    const shards = observed.map(({ shard }) => shard);
    await taker.transaction(async (tx) => {
      expect((await tx.run(leases.take({ owner: "new", leaseMs: 30_000, observed }))).affected).toBe(16);
      await tx.run(leases.recoverShards(shards));
    });
  }

  async function states(): Promise<unknown[]> {
    const result = await watcher.query(
      "SELECT state, count(*)::int AS n FROM local_message GROUP BY state ORDER BY state",
    );
    return result.rows;
  }

  /**
   * A statement waits for a message row that somebody edits; meanwhile the shards are taken.
   * Resolves with the rows that it changed.
   */
  async function overtakeWhileWaiting(
    statement: Statement,
  ): Promise<{ readonly changed: number; readonly takeoverWaited: boolean }> {
    await user.query("BEGIN");
    await user.query("UPDATE local_message SET topic = topic WHERE id = $1", [rows[7]?.id]);
    const claiming = relay.run(statement);
    await waitingForLocks(watcher, 1);
    const taking = takeOver();
    const takeoverWaited = (await endsOrWaits(watcher, 2, taking)) === "waits";
    await user.query("COMMIT");
    const { affected } = await claiming;
    await taking;
    return { changed: affected, takeoverWaited };
  }

  test("a takeover waits for a claim that waits for a message row, and recovers what it claimed", async () => {
    expect(await overtakeWhileWaiting(claim())).toEqual({ changed: 8, takeoverWaited: true });
    expect(await states()).toEqual([{ state: 0, n: 8 }]);
  });

  test("without the fence's lock the takeover passes the claim, whose rows then stay `sending` with nobody to watch them", async () => {
    const { text, ...statement } = claim();
    expect(text).toContain(FENCE_LOCK);
    const unfenced = { ...statement, text: text.replace(FENCE_LOCK, "") };
    expect(await overtakeWhileWaiting(unfenced)).toEqual({ changed: 8, takeoverWaited: false });
    expect(await states()).toEqual([{ state: 1, n: 8 }]);
  });

  test("also somebody's plain UPDATE of an epoch waits for a claim, because the epoch is in the primary key", async () => {
    const takeByHand = async (): Promise<"ends" | "waits"> => {
      await user.query("BEGIN");
      await user.query("UPDATE local_message SET topic = topic WHERE id = $1", [rows[7]?.id]);
      const claiming = relay.run(claim());
      await waitingForLocks(watcher, 1);
      const taking = taker.run({
        name: "take by hand",
        text: "UPDATE local_message_shard SET epoch = epoch + 1",
        params: [],
      });
      const first = await endsOrWaits(watcher, 2, taking);
      await user.query("COMMIT");
      await Promise.all([claiming, taking]);
      return first;
    };
    expect(await takeByHand()).toBe("waits");
    await user.query("UPDATE local_message_shard SET epoch = 1");
    await user.query("UPDATE local_message SET state = 0, lock_version = lock_version - 1");
    await user.query("ALTER TABLE local_message_shard DROP CONSTRAINT local_message_shard_pkey");
    try {
      expect(await takeByHand()).toBe("ends");
    } finally {
      await user.query("ALTER TABLE local_message_shard ADD PRIMARY KEY (table_name, shard, epoch)");
    }
  });

  for (const name of ["claim", "settleSent", "deleteSent", "settleOther", "recoverRows", "park"] as const) {
    test(`${name} that meets a takeover under way waits for it, looks again, and changes nothing`, async () => {
      const { housekeeping, relay: statements } = fixture.statements;
      if (name !== "claim" && name !== "park") expect((await relay.run(claim())).affected).toBe(8);
      const claimed = rows.map((row) => ({ ...row, deliveryCount: 1, lockVersion: nextVersion(row.lockVersion) }));
      const statement = {
        claim: () => claim(),
        settleSent: () =>
          statements.settleSent({
            fence,
            outcomes: claimed.map((row) => sampleOutcome(row)),
            elapsedMs: 1,
            from: "sending",
          }),
        deleteSent: () => statements.deleteSent({ fence, rows: claimed, from: "sending" }),
        settleOther: () =>
          statements.settleOther({
            fence,
            outcomes: claimed.map((row) => sampleOutcome(row, { toState: "pending" })),
            elapsedMs: 1,
            from: "sending",
          }),
        recoverRows: () => housekeeping.recoverRows({ fence, rows: claimed }),
        park: () => housekeeping.park({ fence, rows, parkMs: 1_000 }),
      }[name]();
      // The takeover has the lease rows, and its transaction is open.
      await user.query("BEGIN");
      await user.query("UPDATE local_message_shard SET owner = 'new', epoch = epoch + 1");
      const running = relay.run(statement);
      await waitingForLocks(watcher, 1);
      await user.query("COMMIT");
      expect((await running).affected).toBe(0);
    });
  }

  test("a renewal does not wait for claims and settles under way; with FOR SHARE it would", async () => {
    const renew = fixture.statements.leases.renew({
      owner: "old",
      leaseMs: 30_000,
      held: fence.epochs.map((_, shard) => ({ shard, epoch: "1" })),
    });
    const { text, ...statement } = claim();
    const holder = await fixture.session();
    for (const [lock, waits] of [
      [FENCE_LOCK, false],
      ["FOR SHARE OF lease", true],
    ] as const) {
      await holder.transaction(async (tx) => {
        await tx.run({ ...statement, text: text.replace(FENCE_LOCK, lock) });
        const renewing = taker.run(renew);
        expect(await endsOrWaits(watcher, 1, renewing)).toBe(waits ? "waits" : "ends");
        renewing.catch(() => undefined);
      });
    }
  });

  test("two that take at the same time: one gets the shards, the other none, and nobody waits crosswise", async () => {
    const { leases } = fixture.statements;
    const observed = await observe();
    const reversed = [...observed].reverse();
    const [one, two] = await Promise.all([
      relay.run(leases.take({ owner: "one", leaseMs: 1_000, observed })),
      taker.run(leases.take({ owner: "two", leaseMs: 1_000, observed: reversed })),
    ]);
    expect([one.affected, two.affected].sort((left, right) => left - right)).toEqual([0, 16]);
  });

  test("a claim that was not answered in time cannot take effect once its session is abandoned (rule: claim-token)", async () => {
    const lost = await fixture.session({ statementTimeoutMs: 20_000, lockWaitTimeoutMs: 20_000 });
    await user.query("BEGIN");
    await user.query("UPDATE local_message SET topic = topic WHERE id = $1", [rows[0]?.id]);
    const running = lost.run(claim());
    running.catch(() => undefined);
    await waitingForLocks(watcher, 1);
    await lost.abandon();
    await expect(running).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    await user.query("COMMIT");
    expect(await states()).toEqual([{ state: 0, n: 8 }]);
    expect(lost.dead).toBe(true);
  });
});
