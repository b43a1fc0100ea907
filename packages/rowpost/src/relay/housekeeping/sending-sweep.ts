/**
 * No `sending` row without a watcher (rule: watched-sending). After a claim without a reply, or a
 * state set by hand, no window holds the row. So each owner reads the `sending` rows of its shards;
 * a row outside the window and unchanged in two looks, further apart than the publish timeout, goes
 * back to pending.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { HousekeepingStore, SendingRow } from "../store.ts";

/** Most rows of one look. Only a crash of many batches leaves more, which the takeover recovers. */
const LOOK_LIMIT = 10_000;

export interface SendingSweepOptions {
  readonly store: { readonly housekeeping: Pick<HousekeepingStore, "listSending" | "recover"> };
  readonly keeper: Pick<LeaseKeeper, "usable" | "fence" | "holdsAll">;
  readonly window: Pick<InFlightWindow, "holds">;
  readonly clock: Clock;
  readonly publishTimeoutMs: number;
}

export interface SendingSweep {
  /** Returns the number of rows brought back. Undefined: not due, the database was not asked. */
  look(): Promise<number | undefined>;
}

interface Suspicion {
  readonly row: SendingRow;
  readonly sinceMs: number;
}

export function createSendingSweep(options: SendingSweepOptions): SendingSweep {
  const { keeper, window, clock, publishTimeoutMs } = options;
  const { housekeeping } = options.store;
  // Longer than a publish can last, including its grace.
  const apartMs = Math.ceil(publishTimeoutMs * 1.2) + 1_000;
  let suspicions = new Map<string, Suspicion>();
  let nextLookMs = clock.monotonicMs();

  return {
    async look() {
      const nowMs = clock.monotonicMs();
      const shards = keeper.usable(0);
      if (nowMs < nextLookMs || shards.length === 0) return undefined;
      const rows = await housekeeping.listSending({ shards: keeper.holdsAll ? undefined : shards, limit: LOOK_LIMIT });
      nextLookMs = nowMs + apartMs;
      const next = new Map<string, Suspicion>();
      const abandoned: SendingRow[] = [];
      for (const row of rows) {
        // After the read: a batch claimed meanwhile is in the window by now.
        if (window.holds(row.id)) continue;
        const known = suspicions.get(row.id);
        if (known === undefined || !sameClaim(known.row, row)) next.set(row.id, { row, sinceMs: nowMs });
        else {
          next.set(row.id, known);
          if (nowMs - known.sinceMs >= apartMs) abandoned.push(row);
        }
      }
      suspicions = next;
      if (abandoned.length === 0) return 0;
      const recovered = await housekeeping.recover({ fence: keeper.fence(), rows: abandoned });
      // After an error, or for a locked row, the first sighting still counts.
      if (recovered === abandoned.length) for (const { id } of abandoned) next.delete(id);
      return recovered;
    },
  };
}

function sameClaim(left: SendingRow, right: SendingRow): boolean {
  return left.lockVersion === right.lockVersion && left.deliveryCount === right.deliveryCount;
}
