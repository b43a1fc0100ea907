/**
 * Periodic work besides sending, in small batches with pauses. Every relay sweeps its own `sending`
 * rows (rule: watched-sending). The holder of shard 0 also handles confirmation deadlines, slow
 * retries, resumes, unknown states, archiving, deletion and gauges.
 */

import type { ConfirmRule } from "../../message/message-type.ts";
import type { MessageState } from "../../message/states.ts";
import { backoffMs } from "../../runtime/backoff.ts";
import type { EventEmitter } from "../../runtime/events.ts";
import { resetBackoff } from "../../runtime/reset-backoff.ts";
import type { RelayEvents } from "../events.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Followers } from "../parking/followers.ts";
import type { Room } from "../parking/room.ts";
import { slowRetryInMs } from "../publishing/outcome.ts";
import { about, type RelayReports } from "../reports.ts";
import type { RelayStore, TimedDecision, TimedRow } from "../store.ts";
import type { MessageGauge } from "./gauge.ts";
import type { OldTransactionsWatch } from "./old-transactions.ts";
import type { SendingSweep } from "./sending-sweep.ts";
import { createSteppedClock } from "./stepped-clock.ts";

const BATCH = 500;
/** Most full batches of one turn. */
const BATCHES_PER_TURN = 10;
/** For followers that the relay does not know of. */
const FOLLOWERS_EVERY_MS = 5_000;
const UNKNOWN_STATES_EVERY_MS = 10_000;
const GAUGES_EVERY_MS = 15_000;
const CLOCK_EVERY_MS = 10_000;
const CONFIRMATIONS_EVERY_MS = 600_000;
/** How long confirmations are kept for a message that waits for others. */
const CONFIRMATIONS_KEPT_MS = 90 * 86_400_000;
/** How long confirmations of unknown messages are kept. */
const UNKNOWN_KEPT_MS = 7 * 86_400_000;
const none = (of: Pick<MessageGauge, "topic" | "state">) => ({ ...of, count: 0, oldestAgeMs: 0 });
const LEADER_SHARD = 0;

export interface HousekeepingOptions {
  readonly store: RelayStore;
  readonly keeper: LeaseKeeper;
  readonly followers: Pick<Followers, "release">;
  readonly room: Pick<Room, "takes">;
  readonly sendingSweep: SendingSweep;
  readonly oldTransactions: Pick<OldTransactionsWatch, "look">;
  readonly settings: RelaySettings;
  readonly reports: RelayReports;
  readonly events: EventEmitter<RelayEvents>;
  /** Called when messages became pending. */
  readonly wake: () => void;
}

export interface Housekeeping {
  /**
   * Returns false when nothing was due and the database was not asked. Rejects when the database
   * does not answer.
   */
  turn(): Promise<boolean>;
  /** Brings a topic's backed-off messages forward, ramped. */
  resetBackoff(topic: string): Promise<number>;
}

interface Decided {
  readonly row: TimedRow;
  readonly decision: TimedDecision;
}

/** Returns false when the database was not asked. */
type Job = () => Promise<boolean>;

/** A consumer gave the message up. */
function isReported({ failReason }: TimedRow): boolean {
  return failReason?.startsWith("NOT_CONSUMED:") === true;
}

function unconfirmedReason(row: TimedRow, rule: ConfirmRule | undefined): string {
  if (row.failReason !== null && isReported(row)) return row.failReason;
  return `NOT_CONFIRMED: no confirmation${rule === undefined ? "" : ` within ${rule.withinMs} ms`}`;
}

export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { store, keeper, settings, reports, events } = options;
  const { housekeeping } = store;
  const lastRunMs = new Map<string, number>();
  /** Gauges to reset once they have no rows. */
  let shown: readonly { readonly topic: string; readonly state: MessageState }[] = [];
  /** Reported decisions that may not be written, with the rows' versions. */
  const told = new Map<string, string>();

  function isTime(job: string, everyMs: number): boolean {
    const nowMs = settings.clock.monotonicMs();
    if (nowMs - (lastRunMs.get(job) ?? Number.NEGATIVE_INFINITY) < everyMs) return false;
    lastRunMs.set(job, nowMs);
    return true;
  }

  async function repeat(step: () => Promise<number>): Promise<number> {
    let total = 0;
    for (let turn = 0; turn < BATCHES_PER_TURN; turn += 1) {
      const count = await step();
      total += count;
      if (count < BATCH) break;
    }
    return total;
  }

  /**
   * Handles due timers. Locked rows stay due and come first, so the list grows by the remainder of
   * earlier batches, and a turn tries no row twice: the rows behind always get their batch.
   */
  async function timers(): Promise<true> {
    const tried = new Set<string>();
    let left = 0;
    await repeat(async () => {
      const listed = await housekeeping.listTimed({ limit: BATCH + left });
      const rows = listed.filter(({ id }) => !tried.has(id));
      if (rows.length === 0) return 0;
      for (const { id } of rows) tried.add(id);
      const decided = rows.map((row) => ({ row, decision: decide(row) }));
      const changed = await housekeeping.applyTimed({ decisions: decided.map(({ decision }) => decision) });
      left += rows.length - changed;
      tellOnce(decided, changed);
      if (changed > 0) options.wake();
      return rows.length;
    });
    for (const id of told.keys()) if (!tried.has(id)) told.delete(id);
    return true;
  }

  /**
   * Reports only written decisions. If fewer were written than decided, which ones is unknown: each
   * is reported once, and not at every turn while it stays locked.
   */
  function tellOnce(decided: readonly Decided[], changed: number): void {
    if (changed === 0) return;
    for (const { row, decision } of decided) {
      if (told.get(row.id) !== row.lockVersion) tell(row, decision);
      if (changed < decided.length) told.set(row.id, row.lockVersion);
      else told.delete(row.id);
    }
  }

  function decide(row: TimedRow): TimedDecision {
    const { id, shard, deliveryCount, lockVersion, identityHash } = row;
    const base = { id, shard, deliveryCount, lockVersion, identityHash, failReason: null, nextRetryInMs: null };
    if (row.state === "suspended") return { ...base, transition: "resume" };
    if (row.state === "failed") return { ...base, transition: "slowRetry" };
    return decideUnconfirmed(row, base);
  }

  function tell(row: TimedRow, { transition, failReason, nextRetryInMs }: TimedDecision): void {
    if (transition === "slowRetry") settings.metrics.increment("rowpost_slow_retries_total", { topic: row.topic });
    if (row.state !== "sent") return;
    const rule = settings.confirmOf(row.type);
    const reason = unconfirmedReason(row, rule);
    events.emit("confirmTimeout", { message: about(row), action: rule?.onTimeout ?? "alert", reason });
    if (transition === "confirmTimeoutFail") reports.failed(row, failReason ?? "", nextRetryInMs);
  }

  function decideUnconfirmed(row: TimedRow, base: Omit<TimedDecision, "transition">): TimedDecision {
    const rule = settings.confirmOf(row.type);
    const then = rule?.onTimeout ?? "alert";
    const failReason = unconfirmedReason(row, rule);
    if (then === "alert") return { ...base, transition: "clearTimer" };
    const policy = settings.policyOf(row.type);
    const attempts = row.retryCount + 1;
    if (then === "resend" && attempts < policy.maxAttempts) {
      // A message that a consumer gave up needs a pause; a deadline was one.
      const { baseMs, factor, maxMs } = policy;
      const nextRetryInMs = isReported(row) ? backoffMs({ attempt: attempts, baseMs, factor, maxMs }) : null;
      return { ...base, transition: "confirmTimeoutResend", failReason, nextRetryInMs };
    }
    return { ...base, transition: "confirmTimeoutFail", failReason, nextRetryInMs: slowRetryInMs(policy, row.ageMs) };
  }

  async function sweepSending(): Promise<boolean> {
    const recovered = await options.sendingSweep.look();
    reports.recovered(recovered ?? 0);
    if (recovered !== undefined && recovered > 0) options.wake();
    return recovered !== undefined;
  }

  async function releaseFollowers(): Promise<boolean> {
    if (!isTime("followers", FOLLOWERS_EVERY_MS)) return false;
    let count = 1;
    for (let turn = 0; turn < BATCHES_PER_TURN && count > 0; turn += 1) count = await options.followers.release();
    // There may be more.
    if (count > 0) lastRunMs.delete("followers");
    return true;
  }

  async function unknownStates(): Promise<boolean> {
    if (!isTime("unknown states", UNKNOWN_STATES_EVERY_MS)) return false;
    await repeat(async () => {
      const failed = await housekeeping.failUnknownStates({ limit: BATCH });
      for (const message of failed) reports.failed(message, message.reason, null);
      return failed.length;
    });
    return true;
  }

  async function removeFinished(): Promise<boolean> {
    const { onSent, keepMs } = settings.retention;
    if (onSent !== "keep") {
      const moved = await repeat(() =>
        housekeeping.removeFinished({ mode: onSent, states: ["sent", "consumed"], olderThanMs: keepMs, limit: BATCH }),
      );
      if (moved > 0)
        settings.metrics.increment(
          onSent === "archive" ? "rowpost_archived_total" : "rowpost_deleted_total",
          {},
          moved,
        );
      await settings.reach("archived");
    }
    return onSent !== "keep";
  }

  async function purgeArchive(): Promise<boolean> {
    const { archiveForMs } = settings.retention;
    if (archiveForMs === undefined || !isTime("purge", 60_000)) return false;
    const purged = await repeat(() => housekeeping.purgeArchive({ olderThanMs: archiveForMs, limit: BATCH }));
    if (purged > 0) settings.metrics.increment("rowpost_deleted_total", {}, purged);
    return true;
  }

  async function forgetConfirmations(): Promise<boolean> {
    if (!isTime("confirmations", CONFIRMATIONS_EVERY_MS)) return false;
    await repeat(() => housekeeping.forgetConfirmations({ olderThanMs: CONFIRMATIONS_KEPT_MS, limit: BATCH }));
    await repeat(() => housekeeping.forgetUnknown({ olderThanMs: UNKNOWN_KEPT_MS, limit: BATCH }));
    return true;
  }

  async function gauges(): Promise<boolean> {
    if (!isTime("gauges", GAUGES_EVERY_MS)) return false;
    const all = await housekeeping.gauges();
    const now = all.filter(({ topic }) => options.room.takes(topic));
    const isPart = new Set(all.filter(({ atLeast }) => atLeast).map(({ state }) => state));
    const absent = shown.filter((one) => !now.some(({ topic, state }) => topic === one.topic && state === one.state));
    // A topic missing from a partial count may still have messages: its gauge stays.
    const kept = absent.filter(({ state }) => isPart.has(state));
    show([...now, ...absent.filter((one) => !kept.includes(one)).map(none)]);
    shown = [...now.map(({ topic, state }) => ({ topic, state })), ...kept];
    return true;
  }

  /** This relay's gauges must not remain beside those of the new leader. */
  function clearGauges(): void {
    show(shown.map(none));
    shown = [];
  }

  function show(rows: readonly Omit<MessageGauge, "atLeast">[]): void {
    for (const { topic, state, count, oldestAgeMs } of rows) {
      settings.metrics.gauge("rowpost_messages", { topic, state }, count);
      if (state !== "pending") continue;
      settings.metrics.gauge("rowpost_pending", { topic }, count);
      settings.metrics.gauge("rowpost_oldest_pending_age_ms", { topic }, oldestAgeMs);
    }
  }

  const lookAtClock = createSteppedClock({ housekeeping, settings });

  async function steppedClock(): Promise<boolean> {
    if (!isTime("clock", CLOCK_EVERY_MS)) return false;
    if ((await lookAtClock()) > 0) options.wake();
    return true;
  }

  /**
   * A failed job ends the turn and moves to the end, so that it starves no other. While the
   * database is away, a turn waits for one statement instead of six.
   */
  let order: readonly Job[] = [
    sweepSending,
    timers,
    releaseFollowers,
    unknownStates,
    removeFinished,
    purgeArchive,
    forgetConfirmations,
    gauges,
    steppedClock,
    options.oldTransactions.look,
  ];

  return {
    async turn() {
      let asked = false;
      for (const job of [...order]) {
        if (job !== sweepSending && keeper.leftMs(LEADER_SHARD) === 0) continue;
        try {
          if (await job()) asked = true;
        } catch (error) {
          order = [...order.filter((other) => other !== job), job];
          throw error;
        }
      }
      if (keeper.leftMs(LEADER_SHARD) === 0 && shown.length > 0) clearGauges();
      return asked;
    },
    async resetBackoff(topic) {
      const total = await resetBackoff((batch) => housekeeping.resetBackoff({ topic, ...batch }));
      options.wake();
      return total;
    },
  };
}
