/**
 * Heartbeats of all consumers of a queue, on one session. A locked row does not delay the others:
 * its owner then beats separately.
 */
import type { GroupKey } from "../../../queue/store.ts";
import type { LeaseStore } from "../../../relay/store.ts";
import { DatabaseUnavailableError } from "../../../runtime/errors.ts";
import type { Session } from "../../database.ts";
import { createLockProof } from "../lease-store.ts";
import { integer, labelWithLock, lockedInstance, type Row, shardLease, text } from "../rows.ts";
import { createGathered } from "./gathered.ts";
import type { BeatStatements } from "./statements.ts";
import type { WorkPool } from "./work-pool.ts";

type Request = Parameters<LeaseStore["heartbeat"]>[0];
type View = Awaited<ReturnType<LeaseStore["heartbeat"]>>;
type ShardLease = View["leases"][number];

export interface Beat extends Request {
  readonly key: GroupKey;
}

export interface BeatsParts {
  readonly beats: BeatStatements;
  readonly onLease: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly pool: WorkPool;
}

/** How long the first heartbeat waits for others. */
export const GATHER_MS = 5;
/** An owner whose separate heartbeat was faster than this joins the others again. */
const QUICK_MS = 100;

interface Answer {
  /** No locked row was left out. */
  readonly isWhole: boolean;
  readonly views: readonly View[];
}

export function createBeats({ beats, onLease, pool }: BeatsParts): (beat: Beat) => Promise<View> {
  const provenLock = createLockProof((work) => pool.run(work));
  /** Owners with a locked row at the last heartbeat. */
  const apart = new Set<string>();
  /** lease_until of each row renewed by the last heartbeat. */
  let left: ReadonlyMap<string, string> = new Map();

  /**
   * Undefined: a locked row was skipped. A renewed row differs from the lease_until that we left:
   * at its epoch only we write it, only here, after the member's clock was read. So after a failed
   * or separate heartbeat there is nothing to compare with.
   */
  async function beatTogether(members: readonly Beat[]): Promise<(View | undefined)[]> {
    const before = left;
    left = new Map();
    let answer: Answer;
    try {
      answer = await onLease(async (session) => await exchange(session, members, "skip", await provenLock(session)));
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) throw error;
      return members.map(() => undefined);
    }
    const now = new Map<string, string>();
    const views = answer.views.map((view, index) => {
      const { owner } = members[index] as Beat;
      const rows = heldRows(view, owner);
      const isRenewed = (row: ShardLease): boolean => (before.get(nameOf(row)) ?? row.leaseUntil) !== row.leaseUntil;
      if (!answer.isWhole && !rows.every(isRenewed)) return undefined;
      for (const row of rows) now.set(nameOf(row), row.leaseUntil);
      return view;
    });
    left = now;
    return views;
  }

  function nameOf({ shard, owner, epoch }: ShardLease): string {
    return `${owner} ${shard} ${epoch}`;
  }

  async function exchange(
    session: Session,
    members: readonly Beat[],
    locked: "wait" | "skip",
    lock: string | undefined,
  ): Promise<Answer> {
    const reported = members.map((member) => ({ ...member, label: labelWithLock(member.label, lock) }));
    // Before the renewal: a search for our last session's lock must not find renewed leases under
    // the old name.
    await session.run(beats.reportMembers(reported));
    const asked = members.reduce((sum, { held }) => sum + held.length, 0);
    const renewed = asked === 0 ? 0 : (await session.run(beats.renewPartitions(reported, locked))).affected;
    const keys = [...new Map(members.map(({ key }) => [idOf(key), key])).values()];
    const partitions = byKey((await session.run(beats.readPartitions(keys))).rows);
    const instances = byKey((await session.run(beats.readMembers(keys))).rows);
    const views = members.map(({ key, owner, held, instanceTimeoutMs }) => {
      const leases = (partitions.get(idOf(key)) ?? []).map(shardLease).sort((left, right) => left.shard - right.shard);
      const alive = (row: Row): Row => ({
        ...row,
        alive: Math.abs(integer(row, "silent_ms")) <= instanceTimeoutMs ? 1 : 0,
      });
      // Read after the renewal: epochs only grow, so a partition that is ours at its epoch now was
      // ours then.
      const still = held.filter(({ shard, epoch }) =>
        leases.some((lease) => lease.shard === shard && lease.owner === owner && lease.epoch === epoch),
      );
      const others = (instances.get(idOf(key)) ?? []).map((row) => lockedInstance(alive(row)));
      return { leases, instances: others, suspensions: [], held: still };
    });
    return { isWhole: renewed === asked, views };
  }

  const together = createGathered({ run: beatTogether, waitMs: GATHER_MS });

  async function beatApart(beat: Beat): Promise<View> {
    apart.add(beat.owner);
    const beganMs = performance.now();
    const lock = await onLease(provenLock);
    const { views } = await pool.run((session) => exchange(session, [beat], "wait", lock));
    if (performance.now() - beganMs < QUICK_MS) apart.delete(beat.owner);
    return views[0] as View;
  }

  return async (beat) => {
    const view = apart.has(beat.owner) ? undefined : await together(beat);
    return view ?? (await beatApart(beat));
  };
}

function heldRows({ leases, held }: View, owner: string): ShardLease[] {
  return leases.filter((row) => row.owner === owner && held.some(({ shard }) => shard === row.shard));
}

function idOf({ topic, group }: GroupKey): string {
  return `${topic} ${group}`;
}

function byKey(rows: readonly Row[]): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) {
    const id = idOf({ topic: text(row, "topic"), group: text(row, "groupid") });
    const known = found.get(id);
    if (known === undefined) found.set(id, [row]);
    else known.push(row);
  }
  return found;
}
