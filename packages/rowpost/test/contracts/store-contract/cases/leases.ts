/** Shards: who may take one, who keeps it, and that of two takers exactly one gets it. */

import assert from "node:assert/strict";
import type { ShardLease } from "../../../../src/relay/store.ts";
import { nextVersion } from "../../../../src/runtime/next-version.ts";
import type { StoreContractCase } from "../case.ts";
import { freshOwner, type StoreCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;

/** Milliseconds until the leases end, by shard; and the lengths that stand beside them. */
async function ends(context: StoreCaseContext): Promise<{ readonly inMs: number; readonly leaseMs: number }[]> {
  const { own, dialect } = context;
  const { rows } = await context.sql(
    `SELECT ${dialect.ownMsUntil("lease_until")} AS in_ms, lease_ms AS lease_ms FROM ${own.shard} WHERE ${own.ours} ORDER BY shard`,
  );
  return rows.map((row) => ({ inMs: Number(row["in_ms"]), leaseMs: Number(row["lease_ms"]) }));
}

/** One heartbeat of an owner who holds what he holds. */
function beat(
  context: StoreCaseContext,
  request: Partial<Parameters<typeof context.store.leases.heartbeat>[0]> & { readonly owner: string },
): ReturnType<typeof context.store.leases.heartbeat> {
  return context.store.leases.heartbeat({
    label: "host:1",
    leaseMs: 60_000,
    instanceTimeoutMs: 60_000,
    held: [],
    ...request,
  });
}

export const leaseCases: readonly StoreContractCase[] = [
  {
    name: "leases: other sessions see a session's lock until the session ends, and its owner hears of the loss (rule: session-lock)",
    // Engines without them have no server either: there the lock is the process.
    needs: ["rowLocks"],
    async run(context) {
      const { store, other } = context;
      let losses = 0;
      store.leases.onSessionLost(() => {
        losses += 1;
      });
      const owner = freshOwner();
      const lockOf = async (): Promise<string> => {
        const { instances } = await beat(context, { owner });
        const { label, lock } = instances.find((instance) => instance.owner === owner) ?? {};
        assert.equal(label, "host:1");
        assert.ok(lock !== undefined);
        return lock;
      };
      const first = await lockOf();
      assert.equal(await lockOf(), first);
      assert.deepEqual(await other.store.leases.freeLocks([first]), []);
      await store.abandonSessions();
      assert.equal(losses, 1);
      assert.deepEqual(await other.store.leases.freeLocks([first]), [first]);
      const second = await lockOf();
      assert.notEqual(second, first);
      assert.deepEqual(await other.store.leases.freeLocks([first, second]), [first]);
      // What was scanned on a session that is lost cannot be claimed any more (rule: one-server).
      const limits = { afterId: "0", immediateLimit: 1, dueLimit: 1, bodyLimit: 0 };
      await store.scan({ ...limits, shards: undefined });
    },
  },
  {
    name: "leases: there is one lease for each shard, free at first",
    async run(context) {
      const leases = await context.leases();
      assert.deepEqual(
        leases.map(({ shard }) => shard),
        Array.from({ length: context.shardCount }, (_, index) => index),
      );
      assert.ok(leases.every(({ owner }) => owner === undefined));
    },
  },
  {
    name: "leases: a free shard is taken with the next epoch, until the lease ends",
    async run(context) {
      const before = await context.leases();
      const owner = freshOwner();
      const { acquired } = await context.store.leases.acquire({ owner, leaseMs: HOUR_MS, observed: before });
      assert.deepEqual(
        acquired,
        before.map(({ shard, epoch }) => ({ shard, epoch: nextVersion(epoch) })),
      );
      const after = await context.leases(context.other.store);
      assert.deepEqual(
        after.map(({ shard, owner: who, epoch, leaseMs }) => ({ shard, who, epoch, leaseMs })),
        acquired.map(({ shard, epoch }) => ({ shard, who: owner, epoch, leaseMs: HOUR_MS })),
      );
      for (const { inMs } of await ends(context)) assert.ok(inMs <= HOUR_MS && inMs > HOUR_MS - 15_000, `${inMs} ms`);
    },
  },
  {
    name: "leases: nothing is taken of a lease that is not exactly as it was observed",
    async run(context) {
      const { owner } = await context.acquire();
      const seen = await context.leases();
      const differing: Readonly<Record<string, (lease: ShardLease) => ShardLease>> = {
        "another owner": (lease) => ({ ...lease, owner: freshOwner() }),
        "no owner": (lease) => ({ ...lease, owner: undefined }),
        "an older epoch": (lease) => ({ ...lease, epoch: String(Number(lease.epoch) - 1) }),
        "a newer epoch": (lease) => ({ ...lease, epoch: nextVersion(lease.epoch) }),
        "an earlier end": (lease) => ({ ...lease, leaseUntil: lease.leaseUntil.replace(/\d(?=\D*$)/, flipDigit) }),
      };
      for (const [why, change] of Object.entries(differing)) {
        const observed = seen.map(change);
        const taken = await context.other.store.leases.acquire({ owner: freshOwner(), leaseMs: 1_000, observed });
        assert.deepEqual(taken, { acquired: [], recovered: 0 }, why);
      }
      const now = await context.leases();
      assert.deepEqual(now, seen);
      const asSeen = await context.other.store.leases.acquire({ owner: freshOwner(), leaseMs: 1_000, observed: now });
      assert.equal(asSeen.acquired.length, seen.length, `taken from ${owner}, as observed`);
    },
  },
  {
    name: "leases: of several leases those are taken that are as observed",
    needs: ["shards"],
    async run(context) {
      const observed = await context.leases();
      const changed = await context.acquire({ shards: [1, 5] });
      const { acquired } = await context.store.leases.acquire({ owner: freshOwner(), leaseMs: 60_000, observed });
      const expected = observed.map(({ shard }) => shard).filter((shard) => shard !== 1 && shard !== 5);
      assert.deepEqual(
        acquired.map(({ shard }) => shard),
        expected,
      );
      const now = await context.leases();
      assert.deepEqual([now[1]?.owner, now[5]?.owner], [changed.owner, changed.owner]);
    },
  },
  {
    name: "leases: a renewal between the look and the takeover saves the shard",
    async run(context) {
      const { owner, held } = await context.acquire({ leaseMs: 1_000 });
      const observed = await context.leases();
      await beat(context, { owner, held, leaseMs: HOUR_MS });
      const taken = await context.other.store.leases.acquire({ owner: freshOwner(), leaseMs: 60_000, observed });
      assert.deepEqual(taken.acquired, []);
    },
  },
  {
    name: "leases: an epoch that a JavaScript number would round is taken, kept and given away like any other",
    async run(context) {
      const { ours, shard } = context.own;
      await context.sql(`UPDATE ${shard} SET epoch = 9007199254740993 WHERE ${ours}`);
      const { fence, held, owner } = await context.acquire();
      assert.ok(held.length > 0 && held.every(({ epoch }) => epoch === "9007199254740994"));
      const row = await context.put();
      assert.equal(await context.store.claim({ fence, rows: [await context.token(row)] }), 1);
      await context.store.leases.release({ owner, shards: held });
      assert.ok((await context.leases()).every((lease) => lease.owner === undefined));
      await context.sql(`UPDATE ${shard} SET epoch = 0 WHERE ${ours}`);
    },
  },
  {
    name: "leases: one's own shard taken once more has the next epoch",
    async run(context) {
      const owner = freshOwner();
      const first = await context.acquire({ owner });
      const second = await context.acquire({ owner });
      assert.deepEqual(
        second.held,
        first.held.map(({ shard, epoch }) => ({ shard, epoch: nextVersion(epoch) })),
      );
    },
  },
  {
    name: "leases: of two instances that take the same shards at once, exactly one gets each",
    needs: ["instances"],
    async run(context) {
      for (let round = 0; round < 5; round += 1) {
        const observed = await context.leases();
        const owners = [freshOwner(), freshOwner()] as const;
        const [one, two] = await Promise.all([
          context.store.leases.acquire({ owner: owners[0], leaseMs: 60_000, observed }),
          context.other.store.leases.acquire({ owner: owners[1], leaseMs: 60_000, observed: [...observed].reverse() }),
        ]);
        const taken = [...one.acquired, ...two.acquired].map(({ shard }) => shard).sort((left, right) => left - right);
        assert.deepEqual(
          taken,
          observed.map(({ shard }) => shard),
          `round ${round}`,
        );
        for (const { shard, owner, epoch } of await context.leases()) {
          const winner = one.acquired.some((lease) => lease.shard === shard) ? owners[0] : owners[1];
          assert.deepEqual([owner, epoch], [winner, nextVersion(observed[shard]?.epoch ?? "0")]);
        }
      }
    },
  },
  {
    name: "leases: a heartbeat prolongs what is held, also when its time is over, and says what is lost",
    needs: ["shards"],
    async run(context) {
      const { owner, held } = await context.acquire({ leaseMs: 1 });
      const lost = await context.acquire({ store: context.other.store, shards: [0, 9] });
      const view = await beat(context, { owner, held, leaseMs: HOUR_MS });
      const kept = held.filter(({ shard }) => shard !== 0 && shard !== 9);
      assert.deepEqual(view.held, kept);
      for (const [shard, { inMs, leaseMs }] of (await ends(context)).entries()) {
        const ours = shard !== 0 && shard !== 9;
        assert.equal(leaseMs, ours ? HOUR_MS : 60_000, `shard ${shard}`);
        assert.ok(ours ? inMs > HOUR_MS - 15_000 : inMs <= 60_000, `shard ${shard} for ${inMs} ms`);
      }
      const now = await context.leases();
      assert.deepEqual([now[0]?.owner, now[9]?.owner], [lost.owner, lost.owner]);
    },
  },
  {
    name: "leases: a heartbeat prolongs nothing of an epoch that is over, and nothing that it does not name",
    async run(context) {
      const owner = freshOwner();
      const early = await context.acquire({ owner });
      await context.acquire({ owner });
      const stale = await beat(context, { owner, held: early.held, leaseMs: HOUR_MS });
      assert.deepEqual(stale.held, []);
      const unnamed = await beat(context, { owner, held: [], leaseMs: HOUR_MS });
      assert.deepEqual(unnamed.held, []);
      for (const { inMs } of await ends(context)) assert.ok(inMs <= 60_000, `${inMs} ms`);
    },
  },
  {
    name: "leases: a heartbeat reads all leases as they are after it",
    async run(context) {
      const { owner, held } = await context.acquire();
      const view = await beat(context, { owner, held, leaseMs: 90_000 });
      assert.deepEqual(view.leases, await context.leases(context.other.store));
    },
  },
  {
    name: "leases: a released shard is free at once, and can be taken with the next epoch",
    async run(context) {
      const { owner, held } = await context.acquire();
      await context.store.leases.release({ owner, shards: held });
      const free = await context.leases(context.other.store);
      assert.ok(free.every((lease) => lease.owner === undefined));
      assert.deepEqual(
        free.map(({ epoch }) => epoch),
        held.map(({ epoch }) => epoch),
      );
      for (const { inMs } of await ends(context)) assert.ok(inMs <= 0, `${inMs} ms`);
      const { held: next } = await context.acquire({ store: context.other.store });
      assert.deepEqual(
        next,
        held.map(({ shard, epoch }) => ({ shard, epoch: nextVersion(epoch) })),
      );
    },
  },
  {
    name: "leases: only one's own shards at their epoch are released",
    async run(context) {
      const owner = freshOwner();
      const early = await context.acquire({ owner });
      const now = await context.acquire({ owner });
      const before = await context.leases();
      await context.store.leases.release({ owner, shards: early.held });
      await context.store.leases.release({ owner: freshOwner(), shards: now.held });
      await context.store.leases.release({ owner, shards: [] });
      assert.deepEqual(await context.leases(), before);
    },
  },
  {
    name: "leases: instances are listed with their label, and whether they were heard of lately",
    async run(context) {
      const { dialect, own } = context;
      const [here, silent, gone] = [freshOwner(), freshOwner(), freshOwner()];
      for (const owner of [here, silent, gone]) await beat(context, { owner, label: `old of ${owner}` });
      await beat(context, { owner: here, label: "host:42" });
      const seenAt = dialect.ownAt(-30_000);
      await context.sql(
        `UPDATE ${own.relay} SET seen_at = ${seenAt} WHERE ${own.ours} AND owner = ${dialect.text(silent)}`,
      );
      await context.other.store.leases.leave(gone);
      const { instances } = await beat(context, { owner: here, label: "host:42", instanceTimeoutMs: 20_000 });
      assert.deepEqual(
        new Set(instances.map(({ owner, label, alive }) => `${owner} ${label} ${alive}`)),
        new Set([`${here} host:42 true`, `${silent} old of ${silent} false`]),
      );
    },
  },
  {
    name: "leases: an instance that has been silent for a day is forgotten when a relay opens, others are not",
    async run(context) {
      const { dialect, own } = context;
      const owners = [freshOwner(), freshOwner()] as const;
      for (const [index, owner] of owners.entries()) {
        await beat(context, { owner });
        const seenAt = dialect.ownAt(index === 0 ? -25 * HOUR_MS : -23 * HOUR_MS);
        await context.sql(
          `UPDATE ${own.relay} SET seen_at = ${seenAt} WHERE ${own.ours} AND owner = ${dialect.text(owner)}`,
        );
      }
      await context.openStore();
      const { rows } = await context.sql(`SELECT owner AS owner FROM ${own.relay} WHERE ${own.ours}`);
      assert.deepEqual(
        rows.map((row) => String(row["owner"])),
        [owners[1]],
      );
    },
  },
];

/** Another digit in its place. */
function flipDigit(digit: string): string {
  return String((Number(digit) + 1) % 10);
}
