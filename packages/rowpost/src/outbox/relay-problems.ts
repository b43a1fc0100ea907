/**
 * What a scan found and may not be sent: broken rows become `failed` with a reason, rows under a suspension rule become `suspended`, and when such
 * rows fill the scans, those of a resting topic or behind a blocked head are parked (rule R12). All fenced.
 */
import { ruleReason } from "../message/suspension-reason.ts";
import { describeError } from "../runtime/errors.ts";
import type { SortedRows } from "./candidates.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { ParkedRows } from "./parked-rows.ts";
import type { RelaySettings } from "./relay-options.ts";
import type { RelayReports } from "./relay-reports.ts";
import type { RelayStore, ScannedMessage, SuspensionRule } from "./relay-store.ts";
import { scannedToken } from "./row-token.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

/**
 * Rows are parked only when they took this share of a scan: a few excluded rows cost less than writing them. A quarter, because there are two kinds
 * (resting, behind their key): together they may then hold half of the due branch, which has no cursor, and never all of it.
 */
const PARK_SHARE = 0.25;
/** Followers of a blocked head look again after this long: the price in latency when the head clears meanwhile. */
const PARK_BEHIND_MS = 5_000;
/** Rows of a resting topic are parked for at least this long. */
const PARK_RESTING_MS = 2_000;

/**
 * How long rows of a topic with this rest are parked: no longer than it rests, since topics differ by hours where brokers name a time, and in steps
 * of two, so that many resting topics cost few statements.
 */
function parkMsOf(restMs: number): number {
  return PARK_RESTING_MS * 2 ** Math.max(0, Math.floor(Math.log2(restMs / PARK_RESTING_MS)));
}

/**
 * Rows are set aside beside the rounds, one statement at a time: a row that a user holds locked makes its statement wait for seconds, and must not
 * make the messages of everybody else wait with it. What comes in meanwhile is left alone; the next scan brings it again.
 */
export interface RelayProblems {
  setAside(sorted: SortedRows, scanned: number): void;
  /** Rows behind an earlier message of their key. */
  setBehind(blocked: readonly ScannedMessage[], scanned: number): void;
  /**
   * Due rows behind due messages that the scan did not reach: they go to the end of the line, which is in the order of the time at which rows came due. After an
   * outage rows come due in any order, those of a key too; a scan full of followers would be the same scan for ever (rule R12).
   */
  setBack(unseen: readonly ScannedMessage[]): void;
  /** Resolves when nothing is under way. Never rejects. */
  idle(): Promise<void>;
}

export interface RelayProblemsOptions {
  readonly store: Pick<RelayStore, "housekeeping">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly breaker: Pick<TopicBreaker, "restMs">;
  readonly parked: Pick<ParkedRows, "toPark" | "park">;
  readonly reports: RelayReports;
  readonly settings: Pick<RelaySettings, "logger">;
}

/** Makes the part of a round that deals with what cannot be sent. */
export function createRelayProblems(options: RelayProblemsOptions): RelayProblems {
  const { keeper, breaker, reports, settings } = options;
  const { housekeeping } = options.store;
  let running: Promise<void> | undefined;

  function start(work: () => Promise<void>): void {
    if (running !== undefined) return;
    running = work()
      .catch((error: unknown) => {
        settings.logger.warn("rows could not be set aside; they are looked at again", { error: describeError(error) });
      })
      .finally(() => {
        running = undefined;
      });
  }

  async function fail(broken: SortedRows["broken"]): Promise<void> {
    if (broken.length === 0) return;
    const failed = await housekeeping.failPending({
      fence: keeper.fence(),
      rows: broken.map(({ message, reason }) => ({ ...scannedToken(message), failReason: reason })),
      nextRetryInMs: null,
    });
    // None: the leases were lost, and their next owner tells. Fewer than asked for: somebody changed one meanwhile, and which is not known.
    if (failed > 0) for (const { message, reason } of broken) reports.failed(message, reason, null);
  }

  async function suspend(rule: SuspensionRule, messages: readonly ScannedMessage[]): Promise<void> {
    const suspended = await housekeeping.suspendPending({
      rule,
      fence: keeper.fence(),
      rows: messages.map(scannedToken),
      failReason: `${ruleReason(rule)}${rule.reason} (${rule.author})`,
      endsInMs: rule.endsInMs,
    });
    reports.suspended(messages.slice(0, suspended));
  }

  async function park(messages: readonly ScannedMessage[], parkMs: number): Promise<void> {
    await housekeeping.park({ fence: keeper.fence(), rows: messages.map(scannedToken), parkMs });
  }

  async function setAside(sorted: SortedRows, parkResting: boolean, stopped: readonly ScannedMessage[]): Promise<void> {
    await options.parked.park(stopped);
    await fail(sorted.broken);
    for (const [rule, messages] of sorted.suspended) await suspend(rule, messages);
    if (!parkResting) return;
    const byTime = new Map<number, ScannedMessage[]>();
    for (const message of sorted.resting) {
      const parkMs = parkMsOf(breaker.restMs(message.topic));
      const rows = byTime.get(parkMs);
      if (rows === undefined) byTime.set(parkMs, [message]);
      else rows.push(message);
    }
    for (const [parkMs, rows] of byTime) await park(rows, parkMs);
  }

  return {
    setAside(sorted, scanned) {
      const parkResting = sorted.resting.length > 0 && sorted.resting.length >= scanned * PARK_SHARE;
      const stopped = options.parked.toPark(sorted.stopped, scanned);
      if (sorted.broken.length + sorted.suspended.size + stopped.length === 0 && !parkResting) return;
      start(() => setAside(sorted, parkResting, stopped));
    },
    setBehind(blocked, scanned) {
      if (blocked.length > 0 && blocked.length >= scanned * PARK_SHARE) start(() => park(blocked, PARK_BEHIND_MS));
    },
    setBack(unseen) {
      if (unseen.length > 0) start(() => park(unseen, 0));
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}
