/**
 * Which owners are dead, told by their session locks (rule: session-lock). A relay's lease session
 * holds a lock of the database server's that ends with the session, and its heartbeats write the
 * lock's name into the registry. So a free lock says that the session has ended, a few milliseconds
 * after a SIGKILL, where the lease says nothing for half a minute.
 *
 * It does not say that the process is dead: its connection may have been cut. Such an owner is back
 * within a moment, with another session and another name. Only one that has not come back is dead.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { LeaseStore, LeaseView } from "../store.ts";

/**
 * How often the locks of other relays are looked at, and how long a free one stays unused. 250 ms
 * are a multiple of what a cut session takes to come back (10 to 50 ms on a local network). From a
 * SIGKILL to the next publish by a relay beside it the benchmark `relay-takeover` measured a median
 * of 0.4 to 0.7 s and at most 1.2 s, on a busy machine. A look costs one statement that touches no
 * table.
 */
export const LOOK_MS = 250;
/**
 * After our own session was lost, the others' were probably too (a server that restarted), and they
 * come back one by one: their loops try again at least once a second.
 */
const RETURN_MS = 3_000;

export interface LockWatch {
  /** Takes what a heartbeat has read, and looks at the locks. */
  observe(view: LeaseView): Promise<void>;
  /** Looks at the locks. True: a heartbeat at once may find something to take. */
  look(): Promise<boolean>;
  /** There are locks to look at. */
  readonly hasOthers: boolean;
  /**
   * The lock of this owner has been free for {@link LOOK_MS}, and the last heartbeat still read its
   * name.
   */
  isDead(owner: string): boolean;
  /** The last look found this owner's lock held. */
  isAlive(owner: string): boolean;
  /** Our own session is lost: what was seen does not count, and nothing for a while after it. */
  forget(): void;
}

/** Watches for one relay; `owner` is its own id. */
export function createLockWatch(leases: Pick<LeaseStore, "freeLocks">, owner: string, clock: Clock): LockWatch {
  /** Name of the lock by owner. */
  let locks = new Map<string, string>();
  /** Since when a lock has been seen free. */
  const freeSince = new Map<string, number>();
  /** Those that a look has told of as free for long enough. */
  const told = new Set<string>();
  /** Nothing counts before this instant; undefined: not before our own next heartbeat. */
  let countsFromMs: number | undefined = Number.NEGATIVE_INFINITY;
  /** Locks that the last look found held. */
  let taken: ReadonlySet<string> = new Set();

  function isFree(lock: string): boolean {
    const since = freeSince.get(lock);
    return since !== undefined && clock.monotonicMs() - since >= LOOK_MS;
  }

  /** True: one is newly free, or has now been so for long enough. */
  async function look(): Promise<boolean> {
    const nowMs = clock.monotonicMs();
    taken = new Set();
    if (locks.size === 0 || countsFromMs === undefined || nowMs < countsFromMs) return false;
    const free = new Set(await leases.freeLocks([...locks.values()]));
    taken = new Set([...locks.values()].filter((lock) => !free.has(lock)));
    for (const lock of freeSince.keys()) {
      if (free.has(lock)) continue;
      freeSince.delete(lock);
      told.delete(lock);
    }
    const fresh = [...free].filter((lock) => !freeSince.has(lock));
    for (const lock of fresh) freeSince.set(lock, nowMs);
    const ripe = [...free].filter((lock) => isFree(lock) && !told.has(lock));
    for (const lock of ripe) told.add(lock);
    return fresh.length + ripe.length > 0;
  }

  return {
    look,
    get hasOthers() {
      return locks.size > 0;
    },
    async observe({ instances, leases: rows }) {
      countsFromMs ??= clock.monotonicMs() + RETURN_MS;
      const owners = new Set(rows.map((lease) => lease.owner));
      locks = new Map();
      for (const instance of instances) {
        if (instance.lock === undefined || instance.owner === owner) continue;
        if (instance.alive || owners.has(instance.owner)) locks.set(instance.owner, instance.lock);
      }
      await look();
    },
    isDead(other) {
      const lock = locks.get(other);
      return lock !== undefined && isFree(lock);
    },
    isAlive: (other) => taken.has(locks.get(other) ?? ""),
    forget() {
      freeSince.clear();
      countsFromMs = undefined;
    },
  };
}
