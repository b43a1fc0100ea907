/**
 * Whether this relay does the work that its leases are for. Renewing is not being alive: one whose
 * scans, claims or settles fail while its heartbeats work keeps its shards from relays that could
 * send (rule: working-owner).
 */
import { describeError } from "../../runtime/errors.ts";
import type { RelaySettings } from "../options.ts";
import { type Failing, isAnswer, type RelayReports } from "../reports.ts";
import type { RelayStore } from "../store.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";

export interface Duty {
  /** False: it has given its shards up and takes none. */
  readonly isOn: boolean;
  /** Gives the shards up when the work has failed for longer than a lease. */
  heartbeatWorked(): Promise<void>;
  /**
   * The same when the heartbeats themselves have been answered with errors for that long: without
   * the right to take shards over, it counts as alive, and its share is nobody's.
   */
  heartbeatFailed(error: unknown): Promise<void>;
  /**
   * Looks at the table. True: that worked, and it is time to take part again. Rejects when it did
   * not work.
   */
  look(): Promise<boolean>;
}

export interface DutyOptions {
  readonly settings: Pick<RelaySettings, "clock" | "leaseMs" | "logger">;
  readonly keeper: Pick<LeaseKeeper, "giveUp" | "rejoin" | "heldCount">;
  readonly reports: Pick<RelayReports, "failing">;
  readonly store: Pick<RelayStore, "scan">;
}

/** What a relay is for, by the names of its reports. */
const WORK = ["relay", "settle"] as const;
const LOOK = { afterId: "0", immediateLimit: 1, dueLimit: 1, bodyLimit: 0, shards: undefined };
const LONGEST_PAUSE_MS = 3_600_000;

/** Makes it for a relay that is on duty. */
export function createDuty({ settings, keeper, reports, store }: DutyOptions): Duty {
  const { clock, leaseMs, logger } = settings;
  let isOn = true;
  /** Heartbeats have worked since then; undefined: the last one failed. */
  let heartbeatsSinceMs: number | undefined;
  /** Heartbeats have been answered with errors since then, and no shard was held. */
  let refusedSinceMs: number | undefined;
  let backAtMs = Number.NEGATIVE_INFINITY;
  let notBeforeMs = 0;
  /** How often it came back and could not do its work. */
  let relapses = 0;

  /**
   * From failure to failure: a relay that has nothing to do, or that its broker holds back, does
   * not fail. Nor is a database that is away as a whole anybody's fault.
   */
  function isUseless(failing: Failing | undefined): failing is Failing {
    const sinceMs = Math.max(failing?.sinceMs ?? 0, heartbeatsSinceMs ?? 0, backAtMs);
    return failing !== undefined && failing.lastMs - sinceMs > leaseMs;
  }

  async function leave(part: (typeof WORK)[number], error: unknown): Promise<void> {
    const nowMs = clock.monotonicMs();
    // A look shows that it can scan, and not that it can claim or settle: it pauses longer each
    // time. At least two leases after a failed settle, so that others get what it leaves behind.
    relapses = nowMs - backAtMs < 4 * leaseMs ? relapses + 1 : 0;
    const doublings = relapses + (part === "settle" ? 1 : 0);
    notBeforeMs = doublings === 0 ? nowMs : nowMs + Math.min(LONGEST_PAUSE_MS, leaseMs * 2 ** doublings);
    isOn = false;
    logger.warn(
      "scans, claims or settles have failed for longer than a lease: giving all shards up to other relays until a scan works",
      { part, shards: keeper.heldCount, pauseMs: notBeforeMs - nowMs, error },
    );
    await keeper.giveUp();
  }

  return {
    get isOn() {
      return isOn;
    },
    async heartbeatWorked() {
      heartbeatsSinceMs ??= clock.monotonicMs();
      // One that finds nothing to take works as well.
      if (keeper.heldCount > 0) refusedSinceMs = undefined;
      for (const part of WORK) {
        const failing = reports.failing(part);
        if (isUseless(failing)) return await leave(part, failing.error);
      }
    },
    async heartbeatFailed(error) {
      heartbeatsSinceMs = undefined;
      if (!isOn || !isAnswer(error)) return;
      const nowMs = clock.monotonicMs();
      refusedSinceMs ??= nowMs;
      if (nowMs - Math.max(refusedSinceMs, backAtMs) > leaseMs) await leave("relay", describeError(error));
    },
    async look() {
      await store.scan(LOOK);
      if (clock.monotonicMs() < notBeforeMs) return false;
      isOn = true;
      backAtMs = clock.monotonicMs();
      keeper.rejoin();
      logger.info("a scan works: taking shards again");
      return true;
    },
  };
}
