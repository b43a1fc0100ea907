/**
 * One round of the relay: scan, sort, check the order of keys, claim, hand to the publisher. The rounds of a relay run one after another;
 * publishing and settling of their batches go on side by side (relay-flow.ts).
 */
import type { TableLayout } from "../databases/database.ts";
import { describeError } from "../runtime/errors.ts";
import type { Candidate, SortedRows } from "./candidates.ts";
import { sortRows, withinAllowance } from "./candidates.ts";
import type { InFlightWindow } from "./in-flight-window.ts";
import { keyRanges, leadingRuns, withoutGaps } from "./key-order.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Outlets } from "./outlets.ts";
import type { ParkedRows } from "./parked-rows.ts";
import type { PreparedMessage } from "./publisher.ts";
import type { RelaySettings } from "./relay-options.ts";
import type { RelayProblems } from "./relay-problems.ts";
import type { RelayStore, ScannedMessage } from "./relay-store.ts";
import { compareIds } from "./row-id.ts";
import { claimedToken, scannedToken } from "./row-token.ts";
import type { ScanLimits, ScanSize } from "./scan-size.ts";
import type { Sweep } from "./sweep.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

/** The parts that a round works with. */
export interface RoundParts {
  readonly store: RelayStore;
  readonly layout: TableLayout;
  readonly settings: RelaySettings;
  readonly keeper: LeaseKeeper;
  readonly window: InFlightWindow;
  readonly outlets: Outlets;
  readonly parked: Pick<ParkedRows, "release" | "taken" | "empty">;
  readonly breaker: TopicBreaker;
  readonly sweep: Sweep;
  readonly scanSize: ScanSize;
  readonly problems: RelayProblems;
  /** Takes claimed messages from here on. */
  readonly publish: (messages: readonly PreparedMessage[]) => void;
  /** Takes claimed messages that must not go after all, and returns them uncounted. */
  readonly giveBack: (messages: readonly PreparedMessage[]) => void;
}

/** What a round came to. */
export interface RoundResult {
  readonly claimed: number;
  /** `again`: there may be more right now. `full`: wait until the window has room. `wait`: nothing to do for now. */
  readonly next: "again" | "full" | "wait";
  /** The scan reached the end and left nothing that could go now. */
  readonly exhausted: boolean;
  /** The database was asked, and has answered. */
  readonly asked: boolean;
}

/** See `chosen`. */
interface Chosen {
  readonly now: readonly Candidate[];
  readonly waits: boolean;
  readonly probed: readonly ScannedMessage[];
}

const NOTHING: RoundResult = { claimed: 0, next: "wait", exhausted: false, asked: false };

/** Makes the function that runs a round. */
export function createRound(parts: RoundParts): () => Promise<RoundResult> {
  const { store, settings, keeper, window, outlets, sweep, scanSize } = parts;

  return async function round(): Promise<RoundResult> {
    settings.metrics.gauge("rowpost_in_flight", {}, window.size);
    outlets.look();
    if (outlets.away) return NOTHING;
    // Held back as a whole: nothing could go now, so a `drain` is done and does not wait for somebody to lift the rule.
    if (keeper.suspensions.some((rule) => rule.scope === "relay")) return { ...NOTHING, exhausted: true };
    // A claim, a publish with its whole deadline and a settle must fit into what is left of a lease.
    const shards = keeper.usable(settings.publishTimeoutMs);
    if (shards.length === 0) return NOTHING;
    const { room } = outlets;
    if (room === 0) return { ...NOTHING, next: "full" };

    const rows = await scan(shards, Math.min(room, settings.batchSize));
    // Shards that are being given away still have a lease, but nothing new is claimed there.
    const claimable = new Set(shards);
    const sorted = sortRows({
      rows,
      window,
      breaker: parts.breaker,
      outlets,
      suspensions: keeper.suspensions,
      settings,
      mayClaim: (shard) => claimable.has(shard),
      countsClaims: parts.layout.columns.deliveryCount !== undefined,
      hasContentType: parts.layout.columns.contentType !== undefined,
    });
    const { now, waits, probed } = await chosen(sorted);
    const resting = [...sorted.resting, ...probed];
    parts.problems.setAside({ ...sorted, resting }, scanSize.last);
    // A message of a resting topic is due and was not sent, and rows are being set aside: that is work left.
    const aside = resting.length + sorted.stopped.length + sorted.broken.length + sorted.suspended.size;
    const left = waits || sorted.passedOver + aside > 0;
    const result = await claimAndPublish(
      outlets.admit(now, ({ message }) => message.topic),
      left,
      waits,
    );
    parts.parked.release();
    // What is parked does not show, and is not sent either.
    return { ...result, exhausted: result.exhausted && outlets.flowing && parts.parked.empty };
  };

  async function scan(shards: readonly number[], room: number): Promise<ScannedMessage[]> {
    sweep.begin();
    const number = window.scanStarts();
    const startedMs = settings.clock.monotonicMs();
    const limits = scanSize.limits(room, settings.sendingMark === "off" ? stillListed(window, sweep) : NONE_LISTED);
    const rows = await store.scan({ shards: keeper.holdsAll ? undefined : shards, afterId: sweep.afterId, ...limits });
    window.scanReturned(number);
    settings.metrics.observe("rowpost_scan_duration_ms", {}, settings.clock.monotonicMs() - startedMs);
    const immediate = rows.filter((row) => !row.due);
    const lastId = immediate.at(-1)?.id;
    sweep.advance({ lastId, full: immediate.length >= limits.immediateLimit });
    scanSize.returned(rows, limits);
    await settings.reach("scanned");
    return rows;
  }

  /**
   * Which of the candidates go now, in id order: keyed ones in the order of their key, and a suspect alone. `waits`: a suspect is next, and goes
   * once nothing else is under way. Only a suspect whose turn it is holds up the others: one that stands behind its key may do so for ever.
   * `probed`: their topic rests, and others of it go to find out whether it works again.
   */
  async function chosen(sorted: SortedRows): Promise<Chosen> {
    const ready = await inKeyOrder([...sorted.candidates, ...sorted.suspects]);
    const { go, resting: probed } = withinAllowance(ready, parts.breaker);
    if (sorted.suspects.length === 0) return { now: go, waits: false, probed };
    const { next, before } = aroundSuspects(go, new Set(sorted.suspects));
    if (next === undefined) return { now: before, waits: false, probed };
    return window.size > 0 ? { now: [], waits: true, probed } : { now: [next], waits: false, probed };
  }

  async function inKeyOrder(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const keyed = candidates.filter(({ message }) => message.orderingKey !== null);
    if (keyed.length === 0) return [...candidates].sort((left, right) => compareIds(left.message.id, right.message.id));
    const failedBlocks = settings.onFailed === "block";
    const queues = await store.keyQueues({ keys: keyRanges(keyed.map(({ message }) => message)), failedBlocks });
    const { ready, blocked, next, unseen } = leadingRuns(
      keyed.map(({ message }) => message),
      queues,
      (row) => row.resend || (!failedBlocks && row.retryCount >= settings.policyOf(row.type).maxAttempts),
    );
    parts.problems.setBehind(blocked, scanSize.last);
    // The due branch has no cursor. Where it was not full, it brought every row that is due.
    if (scanSize.dueFull) parts.problems.setBack(unseen.filter(({ due }) => due));
    if (next.length > 0) sweep.touched();
    const allowed = new Set(ready.map(({ id }) => id));
    return candidates
      .filter(({ message }) => message.orderingKey === null || allowed.has(message.id))
      .sort((left, right) => compareIds(left.message.id, right.message.id));
  }

  async function claimAndPublish(
    candidates: readonly Candidate[],
    passedOver: boolean,
    waits: boolean,
  ): Promise<RoundResult> {
    if (passedOver || candidates.length > 0) sweep.touched();
    if (candidates.length === 0) {
      // In the middle of a sweep the rest may hold something; what was passed over goes when something leaves the window.
      const next = !sweep.complete && !waits ? "again" : sweep.clean || window.size === 0 ? "wait" : "full";
      return { claimed: 0, next, exhausted: sweep.complete && sweep.clean, asked: true };
    }
    await settings.reach("beforeClaim");
    const claimed = await claim(candidates);
    for (const { outgoing } of claimed) {
      parts.breaker.taken(outgoing.topic, 1);
      parts.parked.taken(outgoing);
    }
    await settings.reach("claimed");
    if (claimed.length > 0) parts.publish(claimed);
    const more = !sweep.complete || scanSize.dueFull;
    return { claimed: claimed.length, next: more ? "again" : "wait", exhausted: false, asked: true };
  }

  /** Puts the candidates into the window and claims them. Only what is certainly ours comes back; the rest leaves the window again. */
  async function claim(candidates: readonly Candidate[]): Promise<readonly PreparedMessage[]> {
    const fence = keeper.fence();
    const prepared: PreparedMessage[] = [];
    for (const { message, outgoing } of candidates) {
      const epoch = keeper.epochOf(message.shard);
      if (epoch !== undefined) prepared.push({ entry: { message, epoch }, outgoing });
    }
    for (const { entry } of prepared) window.add(entry);
    const startedMs = settings.clock.monotonicMs();
    try {
      const ours = await (settings.sendingMark === "on" ? mark(fence, prepared) : list(fence, prepared));
      settings.metrics.observe("rowpost_claim_duration_ms", {}, settings.clock.monotonicMs() - startedMs);
      return ours;
    } catch (error) {
      // Unknown: the rows may be marked. Nothing is published; if they are, the sweep over `sending` rows brings them back (rule R3).
      for (const { entry } of prepared) window.remove(entry.message.id);
      throw error;
    }
  }

  async function mark(
    fence: ReturnType<LeaseKeeper["fence"]>,
    prepared: readonly PreparedMessage[],
  ): Promise<readonly PreparedMessage[]> {
    const rows = prepared.map(({ entry }) => scannedToken(entry.message));
    let changed: number;
    try {
      changed = await store.claim({ fence, rows });
    } catch (error) {
      settings.logger.warn("the claim of a batch has no answer; reading it back", { error: describeError(error) });
      changed = -1;
    }
    if (changed === prepared.length) return prepared;
    const ids = new Set(
      await store.verifyClaim({ fence, rows: prepared.map(({ entry }) => claimedToken(entry.message, "on")) }),
    );
    // A row that changed since its scan was left out, by the claim alone: the order of its key was looked up before.
    const { go, behind } = withoutGaps(
      prepared.map(({ entry }) => entry.message),
      ids,
    );
    const ours = keep(prepared, ({ entry }) => ids.has(entry.message.id));
    parts.giveBack(ours.filter(({ entry }) => behind.has(entry.message.id)));
    return ours.filter(({ entry }) => go.has(entry.message.id));
  }

  /** `sendingMark: "off"`: the whole window stands in the lease rows, this batch included, before anything of it is published. */
  async function list(
    fence: ReturnType<LeaseKeeper["fence"]>,
    prepared: readonly PreparedMessage[],
  ): Promise<readonly PreparedMessage[]> {
    const byShard = new Map<number, string[]>();
    for (const { shard, epoch } of heldShards(fence)) if (epoch !== undefined) byShard.set(shard, []);
    for (const { message } of window.entries()) byShard.get(message.shard)?.push(message.id);
    const matched = new Set(
      await store.listInFlight({ fence, idsByShard: [...byShard].map(([shard, ids]) => ({ shard, ids })) }),
    );
    return keep(prepared, ({ entry }) => matched.has(entry.message.shard));
  }

  function keep(
    prepared: readonly PreparedMessage[],
    isOurs: (message: PreparedMessage) => boolean,
  ): readonly PreparedMessage[] {
    const ours: PreparedMessage[] = [];
    for (const message of prepared) {
      if (isOurs(message)) ours.push(message);
      else window.remove(message.entry.message.id);
    }
    return ours;
  }
}

/** The first suspect that is at the head of its key, and what may go before any suspect: a key's messages end at its suspect. */
function aroundSuspects(
  ready: readonly Candidate[],
  suspects: ReadonlySet<Candidate>,
): { readonly next: Candidate | undefined; readonly before: readonly Candidate[] } {
  const before: Candidate[] = [];
  const begun = new Set<string | null>();
  const ended = new Set<string | null>();
  for (const candidate of ready) {
    const { orderingKey } = candidate.message;
    if (orderingKey !== null && ended.has(orderingKey)) continue;
    if (!suspects.has(candidate)) {
      before.push(candidate);
      begun.add(orderingKey);
    } else if (orderingKey === null || !begun.has(orderingKey)) return { next: candidate, before };
    else ended.add(orderingKey);
  }
  return { next: undefined, before };
}

function heldShards(
  fence: ReturnType<LeaseKeeper["fence"]>,
): { readonly shard: number; readonly epoch: number | undefined }[] {
  return fence.epochs.map((epoch, shard) => ({ shard, epoch }));
}

const NONE_LISTED: ScanLimits = { immediateLimit: 0, dueLimit: 0 };

/**
 * Without the mark, rows in flight still look like waiting ones, and the scan must reach past them (rule R8). The due branch always begins with
 * them; the immediate branch only at the start of a sweep, because later its place lies behind them.
 */
function stillListed(window: InFlightWindow, sweep: Sweep): ScanLimits {
  let due = 0;
  for (const { message } of window.entries()) if (message.due) due += 1;
  return { immediateLimit: sweep.afterId === "0" ? window.size - due : 0, dueLimit: due };
}
