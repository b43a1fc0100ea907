/**
 * Finds dead owners by their session locks (rule: session-lock). A relay's lease session holds a
 * database lock that ends with the session, and its heartbeats write the lock's name into the
 * registry. A free lock shows within milliseconds of a SIGKILL that the session has ended; the
 * lease alone shows nothing for half a minute.
 *
 * A cut connection also ends the session, but such an owner soon returns with another session and
 * lock name. Only one that has not returned is dead.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { LeaseStore, LeaseView } from "../store.ts";

/**
 * Interval of checking other relays' locks, and how long a free one is not acted on. 250 ms is a
 * multiple of the time a cut session takes to come back (10 to 50 ms on a local network). The
 * benchmark `relay-takeover` measured a median of 0.4 to 0.7 s and at most 1.2 s from a SIGKILL to
 * the next publish by another relay, on a busy machine. A check costs one statement that touches no
 * table.
 */
export const LOOK_MS = 250;
/**
 * After our own session was lost, so probably were the others' (a server restart). They come back
 * one by one, since their loops retry at least once a second.
 */
const RETURN_MS = 3_000;

export interface LockWatch {
  /** Takes a heartbeat's result and checks the locks. */
  observe(view: LeaseView): Promise<void>;
  /** Checks the locks. Returns true when an immediate heartbeat may find something to take. */
  look(): Promise<boolean>;
  /** There are locks to check. */
  readonly hasOthers: boolean;
  /**
   * The lock of this owner has been free for {@link LOOK_MS}, and the last heartbeat still read its
   * name.
   */
  isDead(owner: string): boolean;
  /** The last check found this owner's lock held. */
  isAlive(owner: string): boolean;
  /** Our own session is lost: earlier observations do not count, nor those of the next moments. */
  forget(): void;
}

/** `owner` is the relay's own id. */
export function createLockWatch(leases: Pick<LeaseStore, "freeLocks">, owner: string, clock: Clock): LockWatch {
  /** Lock name by owner. */
  let locks = new Map<string, string>();
  /** When a lock was first seen free. */
  const freeSince = new Map<string, number>();
  /** Locks already reported as free for long enough. */
  const told = new Set<string>();
  /** Observations count from this instant; undefined: not before our own next heartbeat. */
  let countsFromMs: number | undefined = Number.NEGATIVE_INFINITY;
  /** Locks held at the last check. */
  let taken: ReadonlySet<string> = new Set();

  function isFree(lock: string): boolean {
    const since = freeSince.get(lock);
    return since !== undefined && clock.monotonicMs() - since >= LOOK_MS;
  }

  /** Returns true when a lock is newly free, or has now been free for long enough. */
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
