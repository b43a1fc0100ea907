/** Stores that break a promise about settles, redeliveries and leases. */
import { DatabaseConflictError } from "../../../src/runtime/errors.ts";
import { nextVersion } from "../../../src/runtime/next-version.ts";
import { beside, consuming, leasing, type Mutant, type Mutation, settling } from "./mutation.ts";

/** Writes for whoever owns the partition now, and not for whom the settlement is. */
function withoutFence(part: "epoch" | "owner" | "place"): Mutation {
  return consuming((sound) => {
    async function changed(
      owner: string,
      settlement: Parameters<typeof sound.settle>[1],
    ): Promise<[string, typeof settlement]> {
      const { leases } = await sound.leases.heartbeat({
        owner: "mutant",
        label: "mutant",
        leaseMs: 1_000,
        instanceTimeoutMs: 1_000,
        held: [],
      });
      await sound.leases.leave("mutant");
      const lease = leases.find(({ shard }) => shard === settlement.partition);
      const [at] = await sound.progress([settlement.partition]);
      if (lease === undefined || at === undefined) return [owner, settlement];
      if (part === "place") return [owner, { ...settlement, fromId: at.nextId }];
      const isOwner = lease.owner === owner;
      if (part === "epoch") return [owner, isOwner ? { ...settlement, epoch: lease.epoch } : settlement];
      return [lease.owner ?? owner, { ...settlement, epoch: lease.epoch }];
    }
    return {
      settle: async (owner, settlement, place) => await sound.settle(...(await changed(owner, settlement)), place),
      settleIn: async (tx, owner, settlement, place) =>
        await sound.settleIn(tx, ...(await changed(owner, settlement)), place),
    };
  });
}

export const settleMutants: readonly Mutant[] = [
  [
    "each attempt has its record",
    settling((settlement) => ({ ...settlement, records: settlement.records.slice(0, 1) })),
    ...["settle: moves the progress", "settle: records go to the tables"],
  ],
  [
    "a begin is told from an end",
    consuming(({ recorded }) => ({
      recorded: async (round, ids) => (await recorded(round, ids)).map((each) => ({ ...each, isSilent: false })),
    })),
    "settle: the end of an attempt takes the place",
  ],
  [
    "records of another round are none",
    consuming(({ recorded }) => ({ recorded: (_round, ids) => recorded(0, ids) })),
    "settle: the end of an attempt takes the place",
  ],
  [
    "a record may be about several messages",
    settling((settlement) => ({
      ...settlement,
      records: settlement.records.map((each) => ({ ...each, lastId: null, messages: 1 })),
    })),
    ...["settle: one record may be about", "detail: a batch's record"],
  ],
  [
    "what is consumed at last is taken out",
    settling((settlement) => ({ ...settlement, redelivered: [] })),
    "settle: puts what the group gets again",
  ],
  [
    "no new progress is no move",
    settling((settlement) => ({ ...settlement, nextId: settlement.nextId ?? settlement.fromId })),
    "settle: without a new progress",
  ],
  [
    "a dropped month stops no settle",
    consuming(({ settle }, _key, _store) => ({
      async settle(owner, settlement, place) {
        const result = await settle(owner, settlement, place);
        if (settlement.records.length > 1 && settlement.records[0]?.id.startsWith("66")) return false;
        return result;
      },
    })),
    "settle: records of a month whose tables",
  ],
  [
    "a settle is part of the caller's transaction",
    beside(
      consuming(({ settle }) => ({ settleIn: (_tx, owner, settlement, place) => settle(owner, settlement, place) })),
    ),
    ...["settleIn: is part of", "settleIn: a month that was dropped", "fence: a takeover waits"],
  ],
  [
    "owner and epoch are compared",
    beside(withoutFence("owner")),
    ...["fence: a settle of another owner", "fence: without a new progress", "fence: a member whose partition"],
    "fence: a settleIn that is fenced out",
  ],
  ["the epoch is compared", withoutFence("epoch"), "fence: one whose partition came back"],
  ["the place is compared", withoutFence("place"), "fence: a settle of another owner"],
  [
    "a settle locks one partition",
    consuming(({ settleIn }, { topic }) => ({
      async settleIn(tx, ...settlement) {
        const text = `UPDATE message_consumption SET round = round WHERE topic_id = '${topic}'`;
        await tx.run({ name: "by hand", text, params: [] });
        return await settleIn(tx, ...settlement);
      },
    })),
    "fence: the settle of one partition",
  ],
  [
    "what may be written already is not refused",
    settling((settlement) => ({ ...settlement, mayBeWritten: false })),
    "fence: what may have been written",
  ],
  [
    "a redelivery that is gone refuses the settle",
    settling((settlement) => ({
      ...settlement,
      redelivered: [],
      redeliveries: settlement.redeliveries.map((each) => ({ ...each, again: false })),
    })),
    ...["fence: a redelivery that somebody", "fence: a redelivery is changed only"],
  ],
  [
    "what is not due is not delivered",
    settling((settlement) => ({
      ...settlement,
      redeliveries: settlement.redeliveries.map((each) => ({ ...each, dueInMs: 0 })),
    })),
    ...["redelivery: one is due when", "redelivery: an instant far ahead", "redelivery: the first waiting one"],
  ],
  [
    "the oldest comes first",
    consuming(({ due }) => ({ due: async (partition, limit) => (await due(partition, limit)).toReversed() })),
    "redelivery: those that have waited longest",
  ],
  [
    "a dead letter stays dead",
    settling((settlement) => ({
      ...settlement,
      redeliveries: settlement.redeliveries.map((each) => ({ ...each, state: "waiting" })),
    })),
    ...["redelivery: a dead letter", "redelivery: those of the given ordering keys"],
  ],
  [
    "a redelivery is of its partition",
    consuming(({ due }) => ({ due: (_partition, limit) => due(0, limit) })),
    "redelivery: it is of one group",
  ],
  [
    "a redelivery that is put again is as it was put last",
    consuming(({ settle }) => ({
      settle: (owner, settlement, place) =>
        settlement.nextId === undefined
          ? settle(owner, { ...settlement, redeliveries: [] }, place)
          : settle(owner, settlement, place),
    })),
    "redelivery: one that is put again",
  ],
  [
    "a lease has the next epoch",
    leasing(({ acquire }) => ({
      async acquire(request) {
        const { acquired, recovered } = await acquire(request);
        return {
          recovered,
          acquired: acquired.map(({ shard, epoch }) => ({ shard, epoch: String(Number(epoch) - 1) })),
        };
      },
    })),
    "leases: there is one for each partition",
  ],
  [
    "a lease is taken only as it was observed",
    leasing(({ acquire, heartbeat, leave }) => ({
      async acquire(request) {
        const looker = { owner: "mutant", label: "m", leaseMs: 1_000, instanceTimeoutMs: 1_000, held: [] };
        const { leases } = await heartbeat(looker);
        await leave("mutant");
        const shards = request.observed.map(({ shard }) => shard);
        return await acquire({ ...request, observed: leases.filter(({ shard }) => shards.includes(shard)) });
      },
    })),
    "leases: nothing is taken",
  ],
  [
    "one of two takers gets it",
    leasing(({ acquire }) => ({
      async acquire(request) {
        const { recovered } = await acquire(request);
        return {
          recovered,
          acquired: request.observed.map(({ shard, epoch }) => ({ shard, epoch: nextVersion(epoch) })),
        };
      },
    })),
    ...["leases: of two that take", "leases: nothing is taken"],
  ],
  [
    "a heartbeat tells what is lost",
    leasing(({ heartbeat }) => ({
      heartbeat: async (request) => ({ ...(await heartbeat(request)), held: request.held }),
    })),
    ...["leases: a heartbeat prolongs", "rewind: begins a new round"],
  ],
  ["a release frees", leasing(() => ({ release: async () => undefined })), "leases: a release frees"],
  [
    "the silent are not alive",
    leasing(({ heartbeat }) => ({
      async heartbeat(request) {
        const view = await heartbeat(request);
        return { ...view, instances: view.instances.map((each) => ({ ...each, alive: true })) };
      },
    })),
    "leases: members see each other",
  ],
  [
    "a lock is seen while its session lives",
    leasing(() => ({ freeLocks: (locks) => Promise.resolve(locks) })),
    "leases: a session's lock",
  ],
  [
    "a conflict is told",
    consuming(({ settleIn }) => ({
      settleIn: (...call) =>
        settleIn(...call).catch((error: unknown) => {
          if (error instanceof DatabaseConflictError) return false;
          throw error;
        }),
    })),
    "settleIn: a month that was dropped",
  ],
];
