import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLeaseTable, type LeaseTable, type LeaseTableStore } from "../../../test/relay/lease-table.ts";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { createLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";
import { LOOK_MS } from "./lock-watch.ts";

const LEASE_MS = 10_000;
const HEARTBEAT_MS = 1_000;

interface Member {
  readonly keeper: LeaseKeeper;
  readonly store: LeaseTableStore;
  readonly lost: number[];
  readonly inFlight: Map<number, number>;
  /** Relays that reported having no lock. */
  readonly untold: string[];
  reachable: boolean;
}

function member(table: LeaseTable, clock: ManualClock, owner: string, { hasLock = true } = {}): Member {
  const lost: number[] = [];
  const store = table.store({ reachable: () => self.reachable, hasLock });
  const inFlight = new Map<number, number>();
  const self: Member = {
    store,
    lost,
    inFlight,
    untold: [],
    reachable: true,
    keeper: createLeaseKeeper({
      leases: store,
      owner,
      settings: { label: owner, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS, clock },
      window: { countOf: (shard) => inFlight.get(shard) ?? 0 },
      onAcquired: () => {},
      onLost: (shards) => void lost.push(...shards),
      onReleased: () => {},
      onSessionLost: () => {},
      onNoLock: () => self.untold.push(owner),
    }),
  };
  return self;
}

/** Advances both clocks; the monotonic clock is shared by all processes here. */
async function pass(table: LeaseTable, clock: ManualClock, ms: number): Promise<void> {
  table.nowMs += ms;
  await clock.advance(ms);
}

describe("leases", () => {
  it("gives one relay all shards at once, and shares them evenly with a second within three heartbeats", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const first = member(table, clock, "a");
    const second = member(table, clock, "b");
    await first.keeper.heartbeat();
    expect([first.keeper.heldCount, first.keeper.holdsAll]).toEqual([16, true]);
    for (let round = 0; round < 3; round += 1) {
      await second.keeper.heartbeat();
      await first.keeper.heartbeat();
      await pass(table, clock, HEARTBEAT_MS);
    }
    await second.keeper.heartbeat();
    expect([first.keeper.heldCount, second.keeper.heldCount]).toEqual([8, 8]);
  });

  it("keeps a shard whose publishes have not settled until they have (rule: hand-over)", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const first = member(table, clock, "a");
    const second = member(table, clock, "b");
    await first.keeper.heartbeat();
    for (let shard = 0; shard < 16; shard += 1) first.inFlight.set(shard, 1);
    await second.keeper.heartbeat();
    for (let round = 0; round < 5; round += 1) {
      await first.keeper.heartbeat();
      await second.keeper.heartbeat();
      await pass(table, clock, HEARTBEAT_MS);
    }
    expect([first.keeper.heldCount, second.keeper.heldCount]).toEqual([16, 0]);
    expect(first.keeper.usable(0)).toHaveLength(8);
    first.inFlight.clear();
    await first.keeper.heartbeat();
    await second.keeper.heartbeat();
    expect([first.keeper.heldCount, second.keeper.heldCount]).toEqual([8, 8]);
  });

  it("takes a dead relay's shards only after seeing them unchanged for a whole lease on its own clock (rule: hand-over)", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const dead = member(table, clock, "a");
    const heir = member(table, clock, "b");
    await dead.keeper.heartbeat();
    await heir.keeper.heartbeat();
    // The database's clock jumps an hour ahead: every lease_until is in the past, and nothing may
    // be taken because of it.
    table.nowMs += 3_600_000;
    await pass(table, clock, LEASE_MS - 1);
    await heir.keeper.heartbeat();
    expect(heir.keeper.heldCount).toBe(0);
    await pass(table, clock, 1);
    await heir.keeper.heartbeat();
    expect(heir.keeper.heldCount).toBe(16);
  });

  it("takes shards although the database's clock was set back and lease_until lies far ahead (rule: hand-over)", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    table.nowMs = 100_000_000;
    const dead = member(table, clock, "a");
    const heir = member(table, clock, "b");
    await dead.keeper.heartbeat();
    table.nowMs = 0;
    await heir.keeper.heartbeat();
    await pass(table, clock, LEASE_MS);
    await heir.keeper.heartbeat();
    expect(heir.keeper.heldCount).toBe(16);
  });

  it("counts the time left from before the renewal was sent, and uses nothing beyond it", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const relay = member(table, clock, "a");
    await relay.keeper.heartbeat();
    await pass(table, clock, LEASE_MS - 500);
    expect(relay.keeper.usable(1_000)).toEqual([]);
    expect(relay.keeper.usable(500)).toHaveLength(16);
    relay.reachable = false;
    await expect(relay.keeper.heartbeat()).rejects.toThrow("does not answer");
    await pass(table, clock, 500);
    expect(relay.keeper.leftMs(3)).toBe(0);
  });

  it("notices that it was frozen past its lease, and takes its own shards back only with a new epoch (rule: watched-sending)", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const frozen = member(table, clock, "a");
    const heir = member(table, clock, "b");
    await frozen.keeper.heartbeat();
    await heir.keeper.heartbeat();
    await pass(table, clock, LEASE_MS);
    await heir.keeper.heartbeat();
    await frozen.keeper.heartbeat();
    expect(frozen.lost).toHaveLength(16);
    expect(frozen.keeper.heldCount).toBe(0);
    expect(table.rows.every((row) => row.owner === "b" && row.epoch === "2")).toBe(true);
  });

  it("gives everything back when it leaves, and takes nothing any more", async () => {
    const clock = createManualClock();
    const table = createLeaseTable();
    const relay = member(table, clock, "a");
    await relay.keeper.heartbeat();
    relay.inFlight.set(5, 1);
    expect(await relay.keeper.releaseSettled()).toBe(false);
    expect(table.rows.filter((row) => row.owner === "a").map((row) => row.shard)).toEqual([5]);
    relay.inFlight.clear();
    expect(await relay.keeper.releaseSettled()).toBe(true);
    await relay.keeper.heartbeat();
    expect(relay.keeper.heldCount).toBe(0);
  });

  describe("of an owner whose session lock is free", () => {
    /** `a` holds everything; `b` has seen it. */
    async function bench({ hasLock = true } = {}) {
      const clock = createManualClock();
      const table = createLeaseTable();
      const owner = member(table, clock, "a", { hasLock });
      const heir = member(table, clock, "b");
      await owner.keeper.heartbeat();
      await heir.keeper.heartbeat();
      // Sharing gives nothing of it to the second relay.
      for (let shard = 0; shard < 16; shard += 1) owner.inFlight.set(shard, 1);
      return { clock, table, owner, heir };
    }

    it("are taken at the second look, and without a share for the dead (rule: session-lock)", async () => {
      const { clock, table, owner, heir } = await bench();
      expect(await heir.keeper.look()).toBe(false);
      owner.store.kill();
      expect(await heir.keeper.look()).toBe(true);
      await heir.keeper.heartbeat();
      expect(heir.keeper.heldCount).toBe(0);
      await pass(table, clock, LOOK_MS);
      expect(await heir.keeper.look()).toBe(true);
      await heir.keeper.heartbeat();
      expect(heir.keeper.heldCount).toBe(16);
      expect(table.rows.every(({ epoch }) => epoch === "2")).toBe(true);
    });

    it("are not taken when it is back with another session (rule: session-lock)", async () => {
      const { clock, table, owner, heir } = await bench();
      owner.store.loseSession();
      await heir.keeper.look();
      await heir.keeper.heartbeat();
      await owner.keeper.heartbeat();
      await pass(table, clock, LOOK_MS);
      await heir.keeper.look();
      await heir.keeper.heartbeat();
      expect([owner.keeper.heldCount, owner.keeper.usable(0).length, heir.keeper.heldCount]).toEqual([16, 8, 0]);
    });

    it("are not used by itself before its next heartbeat (rule: session-lock)", async () => {
      const { owner } = await bench();
      expect(owner.keeper.mayPublish(0, 1)).toBe(true);
      owner.store.loseSession();
      expect([owner.keeper.hasSession, owner.keeper.mayPublish(0, 1), owner.keeper.usable(0)]).toEqual([
        false,
        false,
        [],
      ]);
      // An outcome may still be written: the lease has not ended, and the fence decides.
      expect(owner.keeper.leftMs(0)).toBeGreaterThan(0);
      await owner.keeper.heartbeat();
      expect(owner.keeper.mayPublish(0, 1)).toBe(true);
    });

    it("are left to the lease where no lock stands for it, which it says once (rule: session-lock)", async () => {
      const { clock, table, owner, heir } = await bench({ hasLock: false });
      await owner.keeper.heartbeat();
      expect([owner.untold, heir.untold]).toEqual([["a"], []]);
      for (let look = 0; look < 3; look += 1) {
        await pass(table, clock, LOOK_MS);
        expect(await heir.keeper.look()).toBe(false);
        await heir.keeper.heartbeat();
      }
      expect(heir.keeper.heldCount).toBe(0);
      await pass(table, clock, LEASE_MS);
      await heir.keeper.heartbeat();
      expect(heir.keeper.heldCount).toBe(16);
    });

    it("are left to it for a while when our own session was lost as well (rule: session-lock)", async () => {
      const { clock, table, owner, heir } = await bench();
      // A server restart ends both sessions; the heir is back first.
      owner.store.loseSession();
      heir.store.loseSession();
      await heir.keeper.heartbeat();
      await pass(table, clock, 2 * LOOK_MS);
      await heir.keeper.look();
      await heir.keeper.heartbeat();
      expect(heir.keeper.heldCount).toBe(0);
      await owner.keeper.heartbeat();
      expect(owner.lost).toEqual([]);
    });

    it("may hold messages that nobody has, until they are taken", async () => {
      const { clock, table, owner, heir } = await bench();
      expect(heir.keeper.othersLive).toBe(true);
      owner.store.kill();
      await heir.keeper.look();
      expect(heir.keeper.othersLive).toBe(false);
      await pass(table, clock, LOOK_MS);
      await heir.keeper.heartbeat();
      expect([heir.keeper.heldCount, heir.keeper.othersLive]).toEqual([16, true]);
    });

    it("may do so as well where no lock stands for it, until it is seen to renew its lease", async () => {
      const { clock, table, owner, heir } = await bench({ hasLock: false });
      expect(heir.keeper.othersLive).toBe(false);
      await pass(table, clock, HEARTBEAT_MS);
      await owner.keeper.heartbeat();
      await heir.keeper.heartbeat();
      expect(heir.keeper.othersLive).toBe(true);
    });

    it("are taken from one that was back for its turn and then died", async () => {
      const { clock, table, owner, heir } = await bench();
      owner.store.loseSession();
      await owner.keeper.heartbeat();
      owner.store.kill();
      await heir.keeper.heartbeat();
      await pass(table, clock, LOOK_MS);
      await heir.keeper.heartbeat();
      expect(heir.keeper.heldCount).toBe(16);
    });
  });

  it("never lets two relays work on one shard at once, whatever stops, freezes or steps", async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("heartbeat" as const), who: fc.nat(2) }),
      fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 6_000 }) }),
      fc.record({ do: fc.constant("databaseClock" as const), ms: fc.integer({ min: -100_000, max: 100_000 }) }),
      fc.record({ do: fc.constant("cut" as const), who: fc.nat(2), reachable: fc.boolean() }),
      fc.record({ do: fc.constant("loseSession" as const), who: fc.nat(2) }),
      fc.record({ do: fc.constant("look" as const), who: fc.nat(2) }),
      fc.record({ do: fc.constant("work" as const), who: fc.nat(2), shard: fc.nat(3), count: fc.nat(1) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const clock = createManualClock();
        const table = createLeaseTable(4);
        const members = ["a", "b", "c"].map((owner) => member(table, clock, owner));
        for (const action of steps) {
          if (action.do === "pass") await pass(table, clock, action.ms);
          else if (action.do === "databaseClock") table.nowMs += action.ms;
          else {
            const chosen = members[action.who] as Member;
            if (action.do === "cut") chosen.reachable = action.reachable;
            else if (action.do === "loseSession") chosen.store.loseSession();
            else if (action.do === "look") await chosen.keeper.look().catch(() => {});
            else if (action.do === "work") chosen.inFlight.set(action.shard, action.count);
            else await chosen.keeper.heartbeat().catch(() => {});
          }
          for (let shard = 0; shard < 4; shard += 1) {
            const workers = members.filter(({ keeper }) => keeper.mayPublish(shard, 1));
            expect(workers.length).toBeLessThanOrEqual(1);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
