/**
 * A lease table in memory that behaves as the SQL does: each call is atomic, time is the
 * *database's* clock, which a test may step or stop. For simulations of several relays; the stores
 * themselves are proven against real servers.
 */

import type { LeaseStore, ShardLease } from "../../src/relay/store.ts";
import { nextVersion } from "../../src/runtime/next-version.ts";

export interface LeaseTable {
  /** The port for one relay. Its calls fail while `reachable` says so. */
  store(options?: LeaseTableStoreOptions): LeaseTableStore;
  /** The database's clock. */
  nowMs: number;
  readonly rows: readonly ShardLease[];
}

export interface LeaseTableStoreOptions {
  readonly reachable?: () => boolean;
  /** Its session holds a lock that others see. Default true. */
  readonly hasLock?: boolean;
}

export interface LeaseTableStore extends LeaseStore {
  /** The session is lost, its lock is free; the next heartbeat has another one. */
  loseSession(): void;
  /** The same for a process that is killed: nobody is told. */
  kill(): void;
}

interface MutableLease {
  shard: number;
  owner: string | undefined;
  epoch: string;
  leaseUntil: string;
  leaseMs: number;
}

/** Makes a table with this many free shards. */
export function createLeaseTable(shardCount = 16): LeaseTable {
  const rows: MutableLease[] = Array.from({ length: shardCount }, (_, shard) => ({
    shard,
    owner: undefined,
    epoch: "0",
    leaseUntil: "",
    leaseMs: 0,
  }));
  const seen = new Map<string, { label: string; lock: string | undefined; atMs: number }>();
  const heldLocks = new Set<string>();
  let sessions = 0;
  const table = { nowMs: 0, rows, store };

  function store({ reachable = () => true, hasLock = true }: LeaseTableStoreOptions = {}): LeaseTableStore {
    let lock: string | undefined;
    let tellLost = (): void => {};
    function kill(): void {
      if (lock !== undefined) heldLocks.delete(lock);
      lock = undefined;
    }
    async function guard(): Promise<void> {
      await Promise.resolve();
      if (!reachable()) throw new Error("the database does not answer");
    }
    const owns = (owner: string, shard: number, epoch: string): MutableLease | undefined =>
      rows.find((row) => row.shard === shard && row.owner === owner && row.epoch === epoch);

    return {
      async heartbeat({ owner, label, leaseMs, instanceTimeoutMs, held }) {
        await guard();
        if (hasLock && lock === undefined) {
          sessions += 1;
          lock = `session ${sessions}`;
          heldLocks.add(lock);
        }
        seen.set(owner, { label, lock, atMs: table.nowMs });
        const still = held.filter(({ shard, epoch }) => {
          const row = owns(owner, shard, epoch);
          if (row !== undefined) row.leaseUntil = String(table.nowMs + leaseMs);
          return row !== undefined;
        });
        const instances = [...seen].map(([name, { label: text, lock: held, atMs }]) => ({
          owner: name,
          label: text,
          lock: held,
          alive: Math.abs(table.nowMs - atMs) < instanceTimeoutMs,
        }));
        return { held: still, leases: rows.map((row) => ({ ...row })), instances, suspensions: [] };
      },
      async acquire({ owner, leaseMs, observed }) {
        await guard();
        const acquired = observed.flatMap((lease) => {
          const row = rows[lease.shard];
          const same = row?.owner === lease.owner && row?.epoch === lease.epoch && row?.leaseUntil === lease.leaseUntil;
          if (row === undefined || !same) return [];
          Object.assign(row, {
            owner,
            epoch: nextVersion(row.epoch),
            leaseMs,
            leaseUntil: String(table.nowMs + leaseMs),
          });
          return [{ shard: row.shard, epoch: row.epoch }];
        });
        return { acquired, recovered: 0 };
      },
      async release({ owner, shards }) {
        await guard();
        for (const { shard, epoch } of shards) {
          const row = owns(owner, shard, epoch);
          if (row !== undefined) row.owner = undefined;
        }
      },
      reports: () => Promise.resolve([]),
      report: guard,
      async leave(owner) {
        await guard();
        seen.delete(owner);
      },
      async freeLocks(locks) {
        await guard();
        return locks.filter((each) => !heldLocks.has(each));
      },
      onSessionLost(listener) {
        tellLost = listener;
      },
      loseSession() {
        kill();
        tellLost();
      },
      kill,
    };
  }

  return table;
}
