/**
 * Leases: the shards that this relay instance may work on, and until when. A single instance holds
 * all shards; several share them evenly within a few heartbeats, without configuration.
 *
 * - Time left is measured on the process's monotonic clock from *before* the renewal was sent: the
 *   database may have written lease_until later, never earlier.
 * - A shard is taken when it is free, or when its row (owner, epoch, lease_until) stayed unchanged
 *   for the owner's whole lease length on our own clock. lease_until is never compared with a
 *   clock, so a stepped database clock neither steals nor freezes a shard (rule: hand-over). A free
 *   session lock lets a dead owner's shard be taken at once (rule: session-lock).
 * - Every acquisition raises the epoch and recovers, even of a shard that the table says is ours:
 *   the reply to an earlier acquisition may have been lost (rule: watched-sending).
 * - A shard is given away only after its own publishes have settled (rule: hand-over).
 */
import type { InFlightWindow } from "../in-flight.ts";
import type { RelaySettings } from "../options.ts";
import type { Fence, HeldShard, LeaseStore, LeaseView, ShardLease, SuspensionRule } from "../store.ts";
import { createLockWatch } from "./lock-watch.ts";

export interface LeaseKeeperOptions {
  readonly leases: LeaseStore;
  readonly owner: string;
  readonly settings: Pick<RelaySettings, "label" | "leaseMs" | "heartbeatMs" | "clock">;
  readonly window: Pick<InFlightWindow, "countOf">;
  /** `silent`: shards whose owner neither released them nor signed off. */
  readonly onAcquired: (
    shards: readonly number[],
    recovered: number,
    silent: readonly number[],
  ) => void | Promise<void>;
  readonly onLost: (shards: readonly number[]) => void;
  readonly onReleased: (shards: readonly number[]) => void | Promise<void>;
  /** An immediate heartbeat gets another session. */
  readonly onSessionLost: () => void;
  /** The relay has no lock: after its death its leases must expire. */
  readonly onNoLock: () => void;
}

export interface LeaseKeeper {
  /**
   * Renews, takes and gives away. Rejects when the database does not answer; leases then expire by
   * themselves.
   */
  heartbeat(): Promise<void>;
  /** Checks other owners' locks. Returns true when a heartbeat may find something to take. */
  look(): Promise<boolean>;
  /** Other owners have locks to check. */
  readonly hasOthers: boolean;
  /**
   * Our session and its lock are intact since the last heartbeat. Otherwise no publish starts,
   * since others may take our shards before the leases end (rule: session-lock).
   */
  readonly hasSession: boolean;
  /**
   * For `stop`: takes no more shards, and releases those without publishes. Returns true when all
   * are released.
   */
  releaseSettled(): Promise<boolean>;
  /** Releases settled shards, lets the other leases expire, and signs off until `rejoin`. */
  giveUp(): Promise<void>;
  rejoin(): void;
  /** Lets all leases expire and drops unsettled outcomes. Ends a `stop` that could not drain. */
  forget(): void;
  leave(): Promise<void>;
  /** Publishable shards that are not being given away. */
  usable(minLeftMs: number): readonly number[];
  /** Held, with this much time left, and with the session's lock. */
  mayPublish(shard: number, minLeftMs: number): boolean;
  /** 0 when not held. */
  leftMs(shard: number): number;
  epochOf(shard: number): string | undefined;
  fence(): Fence;
  readonly heldCount: number;
  readonly holdsAll: boolean;
  /**
   * All other shards have a living owner: its lock is held, or we saw it renew. Otherwise messages
   * of a dead relay may be left.
   */
  readonly othersLive: boolean;
  readonly suspensions: readonly SuspensionRule[];
}

interface Held {
  readonly epoch: string;
  validUntilMs: number;
  draining: boolean;
}

interface Sighting {
  readonly lease: ShardLease;
  readonly sinceMs: number;
}

export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { leases, owner, window } = options;
  const { settings } = options;
  const { label, heartbeatMs, clock } = settings;
  const held = new Map<number, Held>();
  const sightings = new Map<number, Sighting>();
  const watch = createLockWatch(leases, owner, clock);
  /**
   * Not yet certainly released: a lost statement would cost the next owner the rest of the lease.
   */
  let owed: readonly HeldShard[] = [];
  let shardCount = 0;
  let rows: readonly ShardLease[] = [];
  /** Owners seen to renew a lease. */
  const renewing = new Set<string>();
  let suspensions: readonly SuspensionRule[] = [];
  let leaving = false;
  let hasSession = false;
  let lostSessions = 0;
  let isTold = false;

  leases.onSessionLost(() => {
    lostSessions += 1;
    hasSession = false;
    watch.forget();
    options.onSessionLost();
  });

  function heldShards(): HeldShard[] {
    return [...held].map(([shard, { epoch }]) => ({ shard, epoch }));
  }

  async function heartbeat(): Promise<void> {
    const sentAtMs = clock.monotonicMs();
    const { leaseMs } = settings;
    const asked = heldShards();
    const lostBefore = lostSessions;
    // The longest pause that keeps an instance's leases valid.
    const instanceTimeoutMs = Math.max(4 * heartbeatMs, Math.floor(leaseMs / 2));
    const view = await leases.heartbeat({ owner, label, leaseMs, instanceTimeoutMs, held: asked });
    suspensions = view.suspensions;
    shardCount = view.leases.length;
    rows = view.leases;
    keepRenewed(asked, view.held, sentAtMs + leaseMs);
    // The session was lost again meanwhile.
    if (lostSessions === lostBefore) hasSession = true;
    if (!isTold && !view.instances.some((instance) => instance.owner === owner && instance.lock !== undefined)) {
      isTold = true;
      options.onNoLock();
    }
    observe(view.leases);
    await watch.observe(view);
    const share = fairShare(view);
    giveUpExtra(share);
    await releaseDrained();
    if (!leaving) await take(view, share);
  }

  function keepRenewed(asked: readonly HeldShard[], renewed: readonly HeldShard[], untilMs: number): void {
    const still = new Map(renewed.map(({ shard, epoch }) => [shard, epoch]));
    const lost: number[] = [];
    for (const { shard, epoch } of asked) {
      const mine = held.get(shard);
      if (mine === undefined || mine.epoch !== epoch) continue;
      if (still.get(shard) === epoch) mine.validUntilMs = untilMs;
      else {
        held.delete(shard);
        lost.push(shard);
      }
    }
    if (lost.length > 0) options.onLost(lost);
  }

  function observe(seen: readonly ShardLease[]): void {
    const nowMs = clock.monotonicMs();
    const owners = new Set(seen.map((lease) => lease.owner));
    for (const gone of renewing) if (!owners.has(gone)) renewing.delete(gone);
    for (const lease of seen) {
      const known = sightings.get(lease.shard)?.lease;
      const same =
        known !== undefined &&
        known.owner === lease.owner &&
        known.epoch === lease.epoch &&
        known.leaseUntil === lease.leaseUntil;
      if (same) continue;
      if (known !== undefined && known.epoch === lease.epoch && lease.owner !== undefined) renewing.add(lease.owner);
      sightings.set(lease.shard, { lease, sinceMs: nowMs });
    }
  }

  /** Equal shares among live instances; the first by id get the remainder. */
  function fairShare(view: LeaseView): number {
    const instances = view.instances.filter((instance) => instance.alive && !watch.isDead(instance.owner));
    const alive = new Set(instances.map((instance) => instance.owner));
    alive.add(owner);
    const order = [...alive].sort();
    const extra = order.indexOf(owner) < shardCount % order.length ? 1 : 0;
    return Math.floor(shardCount / order.length) + extra;
  }

  function giveUpExtra(share: number): void {
    const kept = [...held].filter(([, lease]) => !lease.draining).sort(([left], [right]) => left - right);
    for (const [, lease] of kept.slice(share)) lease.draining = true;
    let missing = leaving ? 0 : share - kept.length;
    for (const [, lease] of held) {
      if (missing <= 0) break;
      if (lease.draining) {
        lease.draining = false;
        missing -= 1;
      }
    }
  }

  async function releaseDrained(): Promise<void> {
    const empty = [...held].filter(([shard, lease]) => lease.draining && window.countOf(shard) === 0);
    const shards = [...owed, ...empty.map(([shard, { epoch }]) => ({ shard, epoch }))];
    if (shards.length === 0) return;
    // No longer ours, whatever happens to the statement: it is repeated, or the lease expires.
    owed = shards;
    for (const [shard] of empty) held.delete(shard);
    await leases.release({ owner, shards });
    owed = [];
    await options.onReleased(shards.map(({ shard }) => shard));
  }

  async function take(view: LeaseView, share: number): Promise<void> {
    const nowMs = clock.monotonicMs();
    const { leaseMs } = settings;
    const wanted = share - held.size;
    if (wanted <= 0) return;
    const takeable = view.leases.filter((lease) => {
      if (held.has(lease.shard)) return false;
      if (lease.owner === undefined || lease.owner === owner || watch.isDead(lease.owner)) return true;
      const seen = sightings.get(lease.shard);
      return seen !== undefined && nowMs - seen.sinceMs >= lease.leaseMs;
    });
    if (takeable.length === 0) return;
    const { acquired, recovered } = await leases.acquire({ owner, leaseMs, observed: takeable.slice(0, wanted) });
    for (const { shard, epoch } of acquired) {
      held.set(shard, { epoch, validUntilMs: nowMs + leaseMs, draining: false });
    }
    if (acquired.length === 0) return;
    const shards = acquired.map(({ shard }) => shard);
    const left = takeable.filter(
      (lease) => lease.owner !== owner && view.instances.some((instance) => instance.owner === lease.owner),
    );
    const silent = left.map(({ shard }) => shard).filter((shard) => shards.includes(shard));
    await options.onAcquired(shards, recovered, silent);
  }

  function leftMs(shard: number): number {
    const lease = held.get(shard);
    return lease === undefined ? 0 : Math.max(0, lease.validUntilMs - clock.monotonicMs());
  }

  function mayPublish(shard: number, minLeftMs: number): boolean {
    return hasSession && held.has(shard) && leftMs(shard) >= minLeftMs;
  }

  async function releaseSettled(): Promise<boolean> {
    leaving = true;
    for (const [, lease] of held) lease.draining = true;
    await releaseDrained();
    return held.size === 0 && owed.length === 0;
  }

  return {
    heartbeat,
    look: () => watch.look(),
    get hasOthers() {
      return watch.hasOthers;
    },
    get hasSession() {
      return hasSession;
    },
    leftMs,
    mayPublish,
    releaseSettled,
    async giveUp() {
      try {
        await releaseSettled();
      } finally {
        held.clear();
      }
      await leases.leave(owner);
    },
    rejoin() {
      leaving = false;
    },
    forget: () => held.clear(),
    leave: () => leases.leave(owner),
    usable: (minLeftMs) =>
      [...held]
        .filter(([shard, lease]) => !lease.draining && mayPublish(shard, minLeftMs))
        .map(([shard]) => shard)
        .sort((left, right) => left - right),
    epochOf: (shard) => held.get(shard)?.epoch,
    fence() {
      const epochs: (string | undefined)[] = Array.from({ length: shardCount });
      for (const [shard, { epoch }] of held) epochs[shard] = epoch;
      return { owner, epochs };
    },
    get heldCount() {
      return held.size;
    },
    get holdsAll() {
      return held.size > 0 && held.size === shardCount;
    },
    get othersLive() {
      return rows.every(({ shard, owner: other }) => {
        if (held.has(shard)) return true;
        return other !== undefined && (watch.isAlive(other) || (renewing.has(other) && !watch.isDead(other)));
      });
    },
    get suspensions() {
      return suspensions;
    },
  };
}
