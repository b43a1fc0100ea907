/**
 * One round: scan, sort, check the order of keys, claim, publish. Rounds run one after another;
 * publishing and settling overlap (publishing/flow.ts).
 */
import type { TableLayout } from "../../databases/database.ts";
import { byRowId, compareIds } from "../../runtime/compare-ids.ts";
import type { InFlight, InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Parking } from "../parking/parking.ts";
import type { RelayStore, ScannedMessage } from "../store.ts";
import { type KeyOrderDecision, keyRanges, leadingRuns, type StandsOutside } from "./key-order.ts";
import type { Refusals } from "./refusals.ts";
import type { Scan, Scans } from "./scans.ts";
import { type SortedRows, sortRows } from "./sort-rows.ts";
import { aroundSuspects } from "./suspects.ts";

export interface RoundOptions {
  readonly store: Pick<RelayStore, "keyQueues">;
  readonly layout: TableLayout;
  readonly settings: RelaySettings;
  readonly keeper: LeaseKeeper;
  readonly window: InFlightWindow;
  readonly scans: Scans;
  readonly parking: Parking;
  readonly refusals: Pick<Refusals, "holds">;
  readonly claim: (batch: readonly InFlight[]) => Promise<readonly InFlight[]>;
  readonly publish: (messages: readonly InFlight[]) => void;
}

export interface RoundResult {
  readonly claimed: number;
  /** `again`: there may be more now. `full`: wait for room. `wait`: nothing to do. */
  readonly next: "again" | "full" | "wait";
  /** The table was read to its end, and nothing can go now. */
  readonly exhausted: boolean;
  /** The database was asked and answered. */
  readonly asked: boolean;
}

interface Choice {
  readonly go: readonly InFlight[];
  readonly isLeft: boolean;
  /** A suspect is next and waits for messages under way. */
  readonly waits: boolean;
}

interface InOrder {
  readonly ready: readonly InFlight[];
  /** Others go soon. */
  readonly isLeft: boolean;
}

/** Longest wait of a suspect, and of everything else with it. */
const LONGEST_WAIT_MS = 1_000;
const NOTHING_KEYED: KeyOrderDecision = { ready: [], behind: [], unseen: [], next: [] };
const NOTHING: RoundResult = { claimed: 0, next: "wait", exhausted: false, asked: false };

export function createRound(options: RoundOptions): () => Promise<RoundResult> {
  const { settings, keeper, window, scans, refusals } = options;
  const { room, breaker, followers, setAside } = options.parking;
  const { bodyType, columns } = options.layout;
  const failedBlocks = settings.onFailed === "block";
  const standsOutside: StandsOutside = ({ resend, retryCount, type }) =>
    resend || (!failedBlocks && retryCount >= settings.policyOf(type).maxAttempts);
  /** Rows passed over behind others of their keys in this walk. */
  let passedKeyed = 0;
  let waitingSinceMs: number | undefined;

  return async function round(): Promise<RoundResult> {
    settings.metrics.gauge("rowpost_in_flight", {}, window.size);
    if (room.away) return NOTHING;
    // Suspended as a whole: a `drain` ends without waiting for the rule to be lifted.
    if (keeper.suspensions.some((rule) => rule.scope === "relay")) return { ...NOTHING, exhausted: true };
    // A claim, a publish with its deadline and a settle must fit into the lease.
    const shards = keeper.usable(settings.publishTimeoutMs);
    if (shards.length === 0) return NOTHING;

    const scan = await scans.next(shards);
    if (scan.nothingOpen) return { ...NOTHING, next: window.size > 0 ? "full" : "wait" };
    const sorted = sort(scan.rows, shards);
    setAside.take(sorted);
    if (scan.fromStart) passedKeyed = 0;
    const { go, isLeft, waits } = await choose(sorted, scan.dueFull);
    if (isLeft || go.length > 0) scans.touched();
    if (go.length === 0) return await nothingClaimed(scan, shards, waits);
    await settings.reach("beforeClaim");
    const claimed = await options.claim(go).catch((error: unknown) => {
      // An empty scan behind them proves nothing.
      scans.restart();
      throw error;
    });
    for (const { outgoing } of claimed) breaker.taken(outgoing.topic, 1);
    await settings.reach("claimed");
    if (claimed.length > 0) options.publish(claimed);
    return { claimed: claimed.length, next: scan.more ? "again" : "wait", exhausted: false, asked: true };
  };

  function sort(rows: readonly ScannedMessage[], shards: readonly number[]): SortedRows {
    return sortRows({
      // A refused row does not keep a drain from ending.
      rows: rows.filter(({ id }) => !refusals.holds(id)),
      window,
      room,
      followers,
      standsOutside,
      keeper,
      settings,
      // Shards being given away still have a lease, but take nothing new.
      shards: new Set(shards),
      countsClaims: columns.deliveryCount !== undefined,
      hasContentType: columns.contentType !== undefined,
      isBinary: bodyType === "binary",
    });
  }

  /**
   * A suspect waits until nothing else is under way. Hanging calls are excepted, so that an
   * unresponsive topic does not stop everything.
   */
  function waitsAlone(): boolean {
    waitingSinceMs ??= settings.clock.monotonicMs();
    return window.size > 0 && settings.clock.monotonicMs() - waitingSinceMs < LONGEST_WAIT_MS;
  }

  async function choose(sorted: SortedRows, dueFull: boolean): Promise<Choice> {
    const { ready, isLeft: isNext } = await inKeyOrder(sorted, dueFull);
    const suspects = new Set(sorted.suspects.map(({ row }) => row.id));
    const { next, before } = suspects.size === 0 ? { next: undefined, before: ready } : aroundSuspects(ready, suspects);
    if (next !== undefined && waitsAlone()) return { go: [], isLeft: true, waits: true };
    waitingSinceMs = undefined;
    const { go, left } = room.admit(next === undefined ? before : [next]);
    const aside = sorted.broken.length + sorted.suspended.size + sorted.busy.length + sorted.passedOver;
    return { go, isLeft: isNext || aside + left.length > 0, waits: false };
  }

  /** Candidates whose key has no earlier message, in id order. */
  async function inKeyOrder(sorted: SortedRows, dueFull: boolean): Promise<InOrder> {
    const all = [...sorted.candidates, ...sorted.suspects].sort((left, right) => byRowId(left.row, right.row));
    const keyed = all.flatMap(({ row }) => (row.orderingKey === null ? [] : [row]));
    const { ready, behind, unseen, next } = keyed.length === 0 ? NOTHING_KEYED : await order(keyed);
    passedKeyed += sorted.busy.length + unseen.length;
    const isLong = passedKeyed > settings.windowSize;
    const waiting = [
      ...sorted.behind,
      ...behind,
      // The due branch has no position, so rows that fill it must leave it.
      ...unseen.filter(({ row }) => isLong || (dueFull && row.due)),
      ...(isLong ? behindTheirKey(sorted.busy) : []),
    ];
    followers.setBehind(waiting, dueFull);
    const allowed = new Set(ready.map(({ id }) => id));
    return {
      ready: all.filter(({ row }) => row.orderingKey === null || allowed.has(row.id)),
      isLeft: next.length + unseen.length > 0,
    };
  }

  async function order(keyed: readonly ScannedMessage[]): Promise<KeyOrderDecision> {
    const queues = await options.store.keyQueues({ keys: keyRanges(keyed), failedBlocks });
    return leadingRuns(
      keyed,
      queues.map((row) => (refusals.holds(row.id) ? { ...row, due: false } : row)),
      standsOutside,
    );
  }

  /**
   * A long queue of one key must not fill all scans: from the second window full on, its messages
   * are set behind the last one under way. Shorter queues are walked over, without a write.
   */
  function behindTheirKey(busy: readonly ScannedMessage[]) {
    const last = new Map<string | null, ScannedMessage>();
    for (const { row } of [...window.entries()].sort((left, right) => byRowId(left.row, right.row))) {
      if (!standsOutside(row)) last.set(row.orderingKey, row);
    }
    return busy.flatMap((row) => {
      const head = last.get(row.orderingKey);
      const isBehind = head !== undefined && compareIds(head.id, row.id) < 0 && !standsOutside(row);
      return isBehind ? [{ row, headId: head.id }] : [];
    });
  }

  async function nothingClaimed(scan: Scan, shards: readonly number[], waits: boolean): Promise<RoundResult> {
    // The rest of the sweep may hold something; rows passed over go when the window frees.
    const next = !scan.complete && !waits ? "again" : scans.clean || window.size === 0 ? "wait" : "full";
    const isQuiet = scan.whole && scans.clean && followers.still && keeper.othersLive;
    const isOver = isQuiet && !(await scans.leavesClosed(shards));
    return { claimed: 0, next, exhausted: isOver, asked: true };
  }
}
