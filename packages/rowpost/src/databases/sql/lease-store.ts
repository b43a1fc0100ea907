/** Leases on any SQL database (rules: takeover-fence, watched-sending, hand-over, session-lock). */

import type { HeldShard, LeaseStore, RowRefusal, SendingRow } from "../../relay/store.ts";
import { RowRefusedError } from "../../runtime/errors.ts";
import { nextVersion } from "../../runtime/next-version.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { Session } from "../database.ts";
import { pastRefused, telling } from "./past-refused.ts";
import { labelWithLock, lockedInstance, relayStatus, sendingRow, shardLease, suspensionRule } from "./rows.ts";
import type { SessionSlots } from "./session-slots.ts";
import type { HousekeepingStatements, LeaseStatements, RecoveryStatements, TakingStatements } from "./statements.ts";

export interface TakingParts {
  /** Only a relay has recovery; a group's partitions have none. */
  readonly leases: TakingStatements & Partial<RecoveryStatements>;
  /** With recovery, for rows that the table refuses. */
  readonly sending?: Pick<HousekeepingStatements, "listSending" | "recoverRows">;
  readonly onRefused?: (refusal: RowRefusal) => void;
  readonly slots: Pick<SessionSlots, "retry" | "use">;
}

export interface LeaseStoreParts extends TakingParts {
  readonly leases: LeaseStatements;
  readonly slots: SessionSlots;
  /** Calls its argument when the session of the slot `lease` is lost. */
  readonly onSessionLost: (listener: () => void) => void;
}

/**
 * The session's lock, if another of our sessions sees it held. Behind a proxy that spreads a
 * session over connections or servers, it looks free even to its owner. Checked once, since the
 * path does not change.
 */
export function createLockProof(
  onOther: <T>(work: (other: Session) => Promise<T>) => Promise<T>,
): (session: Pick<Session, "lock">) => Promise<string | undefined> {
  let isProven: Promise<boolean> | undefined;
  return async ({ lock }) => {
    if (lock === undefined) return undefined;
    isProven ??= onOther((other) => other.freeLocks([lock])).then(
      (free) => free.length === 0,
      (error: unknown) => {
        isProven = undefined;
        throw error;
      },
    );
    return (await isProven) ? lock : undefined;
  };
}

export function createLeaseStore(parts: LeaseStoreParts): LeaseStore {
  const { leases, slots, onSessionLost } = parts;
  const provenLock = createLockProof((work) => slots.use("settle", work));

  return {
    ...createTaking(parts),
    onSessionLost,
    freeLocks: (locks) => slots.use("lease", (session) => session.freeLocks(locks)),

    async heartbeat({ owner, label, leaseMs, instanceTimeoutMs, held }) {
      return await slots.retry("lease", async (session) => {
        // Before the renewal: a search for our last session's lock must not find renewed leases
        // under the old name.
        await session.run(leases.reportInstance({ owner, label: labelWithLock(label, await provenLock(session)) }));
        if (held.length > 0) await session.run(leases.renew({ owner, leaseMs, held }));
        const rows = (await session.run(leases.readLeases())).rows.map(shardLease);
        const instances = (await session.run(leases.readInstances(instanceTimeoutMs))).rows.map(lockedInstance);
        const rules = (await session.run(leases.readSuspensions())).rows;
        // Read after the renewal: epochs only grow, so a shard that is ours at its epoch now was
        // ours then.
        const still = held.filter(({ shard, epoch }) =>
          rows.some((lease) => lease.shard === shard && lease.owner === owner && lease.epoch === epoch),
        );
        return { leases: rows, instances, suspensions: rules.map(suspensionRule), held: still };
      });
    },

    async reports() {
      return (await slots.use("lease", (session) => session.run(leases.readReports()))).rows.map(relayStatus);
    },

    async report(request) {
      await slots.retry("lease", (session) => session.run(leases.writeReport(request)));
    },
  };
}

export function createTaking(parts: TakingParts): Pick<LeaseStore, "acquire" | "leave" | "release"> {
  const { leases, slots } = parts;
  return {
    async acquire(request) {
      if (request.observed.length === 0) return { acquired: [], recovered: 0 };
      const take = (recovers: boolean): ReturnType<typeof takeOver> =>
        slots.retry("lease", (session) => session.transaction((tx) => takeOver(tx, leases, request, recovers)));
      try {
        return await take(true);
      } catch (error) {
        if (!(error instanceof RowRefusedError)) throw error;
        const { acquired } = await take(false);
        return { acquired, recovered: await recoverTaken(parts, request.owner, acquired) };
      }
    },

    async release({ owner, shards }) {
      if (shards.length === 0) return;
      await slots.retry("lease", (session) => session.run(leases.release({ owner, shards })));
    },

    async leave(owner) {
      await slots.retry("lease", (session) => session.run(leases.removeInstance(owner)));
    },
  };
}

/**
 * Lease rows first, then the old owner's messages. A `sending` row that a user holds must not block
 * the takeover; the new owner's sweep returns it later (rule: watched-sending). The old owner's
 * claims and settles cannot hold it, because they hold the lease row, for which the first statement
 * waits. Its sweep can briefly on MySQL, but finds the epoch changed and leaves the row to ours. A
 * listed row that a user holds is sent again uncounted (see recoverListed).
 */
async function takeOver(
  tx: Pick<Executor, "run">,
  leases: TakingParts["leases"],
  { owner, leaseMs, observed }: Parameters<LeaseStore["acquire"]>[0],
  recovers: boolean,
): ReturnType<LeaseStore["acquire"]> {
  const { affected } = await tx.run(leases.take({ owner, leaseMs, observed }));
  if (affected === 0) return { acquired: [], recovered: 0 };
  // This transaction has locked the rows, so they cannot have changed.
  const now = (await tx.run(leases.readLeases())).rows.map(shardLease);
  const acquired = observed.flatMap(({ shard, epoch }) =>
    now.some((lease) => lease.shard === shard && lease.owner === owner && lease.epoch === nextVersion(epoch))
      ? [{ shard, epoch: nextVersion(epoch) }]
      : [],
  );
  const shards = acquired.map(({ shard }) => shard);
  let recovered = 0;
  for (const recover of [leases.recoverShards, leases.recoverListed]) {
    if (recover !== undefined && recovers) recovered += (await tx.run(recover(shards))).affected;
  }
  if (leases.clearListed !== undefined) await tx.run(leases.clearListed(shards));
  return { acquired, recovered };
}

/** Rows that a takeover returns one by one; the sweep finds the rest. */
const RECOVERED_AT_ONCE = 10_000;

/**
 * A row of the old owner that the table refuses must not block the takeover or other `sending`
 * rows: after the takeover, at our epoch, all others are returned, and it is left to the sweep. If
 * we die before, the next owner does the same. Listed rows are then sent again uncounted.
 */
async function recoverTaken(
  { sending, slots, onRefused }: TakingParts,
  owner: string,
  acquired: readonly HeldShard[],
): Promise<number> {
  if (sending === undefined || onRefused === undefined || acquired.length === 0) return 0;
  const epochs: (string | undefined)[] = [];
  for (const { shard, epoch } of acquired) epochs[shard] = epoch;
  const list = sending.listSending({ shards: acquired.map(({ shard }) => shard), limit: RECOVERED_AT_ONCE });
  const rows: readonly SendingRow[] = (await slots.use("lease", (session) => session.run(list))).rows.map(sendingRow);
  const recover = async (some: typeof rows): Promise<number> => {
    const statement = sending.recoverRows({ fence: { owner, epochs }, rows: some });
    return (await slots.retry("lease", (session) => session.run(statement))).affected;
  };
  return await pastRefused(rows, recover, telling(onRefused, "recover"));
}
