/**
 * Finds dead owners by their session locks (rule: session-lock). A relay's lease session holds a
 * database lock, named in the registry, that ends with the session. A free lock shows within
 * milliseconds of a SIGKILL that the session ended; the lease shows it only after half a minute.
 *
 * A cut connection ends the session too, but its owner soon returns with another one. Only an owner
 * that has not returned is dead.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { LeaseStore, LeaseView } from "../store.ts";

/**
 * Interval of lock checks, and the grace of a free lock. A cut session takes 10 to 50 ms to come
 * back on a local network. The benchmark `relay-takeover` measured a median of 0.4 to 0.7 s and at
 * most 1.2 s from a SIGKILL to the next publish by another relay, on a busy machine. A check costs
 * one statement that touches no table.
 */
export const LOOK_MS = 250;
/**
 * When our own session was lost, the others' probably were too (a server restart). Their loops
 * retry at least once a second.
 */
const RETURN_MS = 3_000;

export interface LockWatch {
  observe(view: LeaseView): Promise<void>;
  /** Returns true when a heartbeat may find something to take. */
  look(): Promise<boolean>;
  /** There are locks to check. */
  readonly hasOthers: boolean;
  /**
   * The owner's lock has been free for {@link LOOK_MS}, and the last heartbeat still read its name.
   */
  isDead(owner: string): boolean;
  isAlive(owner: string): boolean;
  /** Our own session is lost: observations until some time later do not count. */
  forget(): void;
}

/** `owner` is the relay's own id. */
export function createLockWatch(leases: Pick<LeaseStore, "freeLocks">, owner: string, clock: Clock): LockWatch {
  let locks = new Map<string, string>();
  const freeSince = new Map<string, number>();
  const told = new Set<string>();
  /** Undefined: observations count from our next heartbeat on. */
  let countsFromMs: number | undefined = Number.NEGATIVE_INFINITY;
  let taken: ReadonlySet<string> = new Set();

  function isFree(lock: string): boolean {
    const since = freeSince.get(lock);
    return since !== undefined && clock.monotonicMs() - since >= LOOK_MS;
  }

  /** Returns true when a lock is newly free, or has been for long enough. */
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
