/**
 * A relay whose heartbeats succeed while its scans, claims or settles fail keeps its shards from
 * relays that could send (rule: working-owner). This detects it.
 */
import { describeError } from "../../runtime/errors.ts";
import type { RelaySettings } from "../options.ts";
import { type Failing, isAnswer, type RelayReports } from "../reports.ts";
import type { RelayStore } from "../store.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";

export interface Duty {
  /** False: it gave up its shards and takes none. */
  readonly isOn: boolean;
  /** Gives the shards up when the work failed for longer than a lease. */
  heartbeatWorked(): Promise<void>;
  /**
   * The same when heartbeats were refused for that long: without the right to take shards the relay
   * counts as alive, and its share stays unserved.
   */
  heartbeatFailed(error: unknown): Promise<void>;
  /**
   * Checks the table. Returns true when it is time to take part again. Rejects when the check
   * failed.
   */
  look(): Promise<boolean>;
}

export interface DutyOptions {
  readonly settings: Pick<RelaySettings, "clock" | "leaseMs" | "logger">;
  readonly keeper: Pick<LeaseKeeper, "giveUp" | "rejoin" | "heldCount">;
  readonly reports: Pick<RelayReports, "failing">;
  readonly store: Pick<RelayStore, "scan">;
}

/** The relay's work, by the names of its reports. */
const WORK = ["relay", "settle"] as const;
const LOOK = { afterId: "0", immediateLimit: 1, dueLimit: 1, bodyLimit: 0, shards: undefined };
const LONGEST_PAUSE_MS = 3_600_000;

/** Starts on duty. */
export function createDuty({ settings, keeper, reports, store }: DutyOptions): Duty {
  const { clock, leaseMs, logger } = settings;
  let isOn = true;
  /** Undefined: the last heartbeat failed. */
  let heartbeatsSinceMs: number | undefined;
  /** Heartbeats are refused since then, with no shard held. */
  let refusedSinceMs: number | undefined;
  let backAtMs = Number.NEGATIVE_INFINITY;
  let notBeforeMs = 0;
  let relapses = 0;

  /**
   * From failure to failure: a relay that is idle or waits for its broker does not fail, nor is a
   * database outage its fault.
   */
  function isUseless(failing: Failing | undefined): failing is Failing {
    const sinceMs = Math.max(failing?.sinceMs ?? 0, heartbeatsSinceMs ?? 0, backAtMs);
    return failing !== undefined && failing.lastMs - sinceMs > leaseMs;
  }

  async function leave(part: (typeof WORK)[number], error: unknown): Promise<void> {
    const nowMs = clock.monotonicMs();
    // A look proves scans, not claims or settles, so each pause is longer; at least two leases
    // after a failed settle, so that others get the rest.
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
      // Finding nothing to take works too.
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
