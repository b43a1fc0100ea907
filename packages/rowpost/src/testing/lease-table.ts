/**
 * A lease table in memory that behaves as the SQL does: each call is atomic, time is the
 * *database's* clock, which a test may step or stop. For simulations of several relays; the stores
 * themselves are proven against real servers.
 */
import type { LeaseStore, ShardLease } from "../relay/store.ts";

export interface LeaseTable {
  /** The port for one relay. Its calls fail while `reachable` says so. */
  store(options?: { readonly reachable?: () => boolean }): LeaseStore;
  /** The database's clock. */
  nowMs: number;
  readonly rows: readonly ShardLease[];
}

interface MutableLease {
  shard: number;
  owner: string | undefined;
  epoch: number;
  leaseUntil: string;
  leaseMs: number;
}

/** Makes a table with this many free shards. */
export function createLeaseTable(shardCount = 16): LeaseTable {
  const rows: MutableLease[] = Array.from({ length: shardCount }, (_, shard) => ({
    ...{ shard, owner: undefined, epoch: 0, leaseUntil: "", leaseMs: 0 },
  }));
  const seen = new Map<string, { label: string; atMs: number }>();
  const table = { nowMs: 0, rows, store };

  function store({ reachable = () => true }: { readonly reachable?: () => boolean } = {}): LeaseStore {
    async function guard(): Promise<void> {
      await Promise.resolve();
      if (!reachable()) throw new Error("the database does not answer");
    }
    const owns = (owner: string, shard: number, epoch: number): MutableLease | undefined =>
      rows.find((row) => row.shard === shard && row.owner === owner && row.epoch === epoch);

    return {
      async heartbeat({ owner, label, leaseMs, instanceTimeoutMs, held }) {
        await guard();
        seen.set(owner, { label, atMs: table.nowMs });
        const still = held.filter(({ shard, epoch }) => {
          const row = owns(owner, shard, epoch);
          if (row !== undefined) row.leaseUntil = String(table.nowMs + leaseMs);
          return row !== undefined;
        });
        const instances = [...seen].map(([name, { label: text, atMs }]) => ({
          ...{ owner: name, label: text, alive: Math.abs(table.nowMs - atMs) < instanceTimeoutMs },
        }));
        return { held: still, leases: rows.map((row) => ({ ...row })), instances, suspensions: [] };
      },
      async acquire({ owner, leaseMs, observed }) {
        await guard();
        const acquired = observed.flatMap((lease) => {
          const row = rows[lease.shard];
          const same = row?.owner === lease.owner && row?.epoch === lease.epoch && row?.leaseUntil === lease.leaseUntil;
          if (row === undefined || !same) return [];
          Object.assign(row, { owner, epoch: row.epoch + 1, leaseMs, leaseUntil: String(table.nowMs + leaseMs) });
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
      async leave(owner) {
        await guard();
        seen.delete(owner);
      },
    };
  }

  return table;
}
