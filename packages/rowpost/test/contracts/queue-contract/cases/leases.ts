/** Partitions: who may take one, who keeps it, and that of two takers exactly one gets it. */
import assert from "node:assert/strict";
import type { LeaseView, ShardLease } from "../../../../src/relay/store.ts";
import { until } from "../../../../src/testing/contract-run.ts";
import type { QueueContractCase } from "../case.ts";
import { freshOwner, type Member } from "../member.ts";

/** The leases as somebody else sees them. */
async function look({ consumption }: Pick<Member, "consumption">): Promise<LeaseView> {
  const owner = freshOwner();
  const request = { owner, label: "looks on", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
  const view = await consumption.leases.heartbeat(request);
  await consumption.leases.leave(owner);
  return view;
}

/** Who holds each partition, at which epoch. */
function holders(leases: readonly ShardLease[]): (readonly [string | undefined, string])[] {
  return leases.map(({ owner, epoch }) => [owner, epoch]);
}

export const leaseCases: readonly QueueContractCase[] = [
  {
    name: "leases: there is one for each partition, free at first, and taken with the next epoch",
    async run({ consumption, other }) {
      const billing = consumption("billing");
      await billing.join("start");
      const { leases } = await look({ consumption: billing });
      assert.deepEqual(
        leases.map(({ shard, owner, epoch }) => [shard, owner, epoch]),
        [
          [0, undefined, "0"],
          [1, undefined, "0"],
        ],
      );
      const request = { owner: "takes-one", leaseMs: 60_000, observed: leases.slice(1) };
      const { acquired } = await billing.leases.acquire(request);
      assert.deepEqual(acquired, [{ shard: 1, epoch: "1" }]);
      const seen = await look({ consumption: consumption("billing", other) });
      assert.deepEqual(holders(seen.leases), [
        [undefined, "0"],
        ["takes-one", "1"],
      ]);
      assert.equal(seen.leases[1]?.leaseMs, 60_000);
    },
  },
  {
    name: "leases: nothing is taken of a lease that is not exactly as it was observed",
    async run({ member }) {
      const billing = await member();
      const seen = (await look(billing)).leases;
      const differing: Readonly<Record<string, (lease: ShardLease) => ShardLease>> = {
        "another owner": (lease) => ({ ...lease, owner: freshOwner() }),
        "no owner": (lease) => ({ ...lease, owner: undefined }),
        "an older epoch": (lease) => ({ ...lease, epoch: String(Number(lease.epoch) - 1) }),
        "an earlier end": (lease) => ({
          ...lease,
          leaseUntil: lease.leaseUntil.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10)),
        }),
      };
      for (const [why, change] of Object.entries(differing)) {
        const request = { owner: freshOwner(), leaseMs: 1_000, observed: seen.map(change) };
        assert.deepEqual((await billing.consumption.leases.acquire(request)).acquired, [], why);
      }
      assert.deepEqual((await look(billing)).leases, seen);
    },
  },
  {
    name: "leases: of two that take a partition at once exactly one gets it",
    needs: ["instances"],
    async run({ consumption, other }) {
      const both = [consumption("billing"), consumption("billing", other)];
      for (const each of both) await each.join("start");
      const [first] = both;
      assert.ok(first !== undefined);
      const { leases } = await look({ consumption: first });
      const taken = await Promise.all(
        both.map((each, n) => each.leases.acquire({ owner: `taker-${n}`, leaseMs: 60_000, observed: leases })),
      );
      const partitions = taken.flatMap(({ acquired }) => acquired.map(({ shard }) => shard));
      assert.equal(partitions.length, 2);
      assert.deepEqual(new Set(partitions), new Set([0, 1]));
    },
  },
  {
    name: "leases: a heartbeat prolongs what is held, and says what is no longer",
    async run({ member, other }) {
      const slow = await member();
      const before = (await look(slow)).leases;
      assert.deepEqual((await slow.heartbeat({ leaseMs: 3_600_000 })).held.length, 2);
      const prolonged = (await look(slow)).leases;
      assert.ok(
        prolonged.every(({ leaseUntil }, index) => leaseUntil > (before[index]?.leaseUntil ?? "")),
        "the leases end later",
      );
      const quick = await member({ instance: other });
      assert.deepEqual((await slow.heartbeat()).held, []);
      assert.equal((await quick.heartbeat()).held.length, 2);
      assert.deepEqual(holders((await look(quick)).leases), [
        [quick.owner, "2"],
        [quick.owner, "2"],
      ]);
    },
  },
  {
    name: "leases: a release frees what is one's own at that epoch, and nothing else",
    async run({ member }) {
      const slow = await member();
      const { held } = await slow.heartbeat();
      const quick = await member();
      await slow.consumption.leases.release({ owner: slow.owner, shards: held });
      assert.ok((await look(quick)).leases.every(({ owner }) => owner === quick.owner));
      const own = (await quick.heartbeat()).held;
      await quick.consumption.leases.release({ owner: quick.owner, shards: own.slice(0, 1) });
      assert.deepEqual(
        (await look(quick)).leases.map(({ owner }) => owner),
        [undefined, quick.owner],
      );
    },
  },
  {
    name: "leases: members see each other alive, until they leave or are silent",
    async run({ member, sql, dialect, topic }) {
      const [one, two] = [await member(), await member()];
      const alive = async (): Promise<string[]> => {
        const { instances } = await one.heartbeat();
        return instances.filter((each) => each.alive).map((each) => each.owner);
      };
      assert.deepEqual((await alive()).toSorted(), [one.owner, two.owner].sort());
      const { instances } = await one.heartbeat();
      assert.equal(instances.find(({ owner }) => owner === two.owner)?.label, `host:${two.owner}`);
      await sql(
        `UPDATE message_consumer SET seen_at = ${dialect.ownAt(-120_000)} WHERE topic_id = '${topic}' AND owner = '${two.owner}'`,
      );
      assert.deepEqual(await alive(), [one.owner], "the other one is silent");
      await two.heartbeat();
      assert.equal((await alive()).length, 2);
      await two.consumption.leases.leave(two.owner);
      assert.deepEqual(await alive(), [one.owner], "the other one has left");
    },
  },
  {
    name: "leases: a session's lock is seen by others for as long as the session lives",
    // Engines without them have no server either: there the lock is the process.
    needs: ["rowLocks", "instances"],
    async run({ member, other, store, topic, consumption }) {
      const key = { topic, group: "billing" };
      const short = store.consumption(key, { lockWaitTimeoutMs: 1_000 });
      await short.join("start");
      const request = { owner: freshOwner(), label: "x", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
      const { instances } = await short.leases.heartbeat(request);
      const lock = instances.find(({ owner }) => owner === request.owner)?.lock;
      assert.ok(lock !== undefined, "a lock is told");
      await member();
      const looker = consumption("billing", other);
      assert.deepEqual(await looker.leases.freeLocks([lock]), []);
      await short.close();
      // The server ends a session some moments after its client has said goodbye.
      await until("the lock is free", async () => (await looker.leases.freeLocks([lock])).includes(lock));
    },
  },
];
