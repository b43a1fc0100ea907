/**
 * Writes the outcomes of several publish calls together, so that many small topics cost no more
 * statements than one large one. While the database is away, outcomes are retried as long as the
 * lease lives, instead of publishing twice.
 */
import type { PublishResult } from "../../brokers/broker.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { RowRefusedError } from "../../runtime/errors.ts";
import type { InFlight } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Outcome, RelayStore, RowNow } from "../store.ts";
import { inPlainerWords } from "./plainer-words.ts";

export interface Settlement {
  readonly message: InFlight;
  readonly result: PublishResult;
  readonly outcome: Outcome;
  /** Written instead of an `outcome` that the table refused. */
  readonly written?: Outcome | undefined;
  /** By the transaction that stored the message. */
  readonly isWritten?: boolean;
  /** Monotonic start of its publish. */
  readonly startedMs: number;
}

/** Each settlement ends in one of onSettled, onFenced and onLost. */
export interface SettlerEvents {
  onSettled(settlements: readonly Settlement[]): void;
  /** The row was no longer ours. `now` undefined: it is gone. */
  onFenced(settlement: Settlement, now: RowNow | undefined): void;
  /** The lease ended first. */
  onLost(settlement: Settlement): void;
  onDatabaseError(error: unknown): void;
  /**
   * `isHeld`: refused even without its texts, so it is retried; otherwise written with plainer
   * ones. Reported once each.
   */
  onRefused(settlement: Settlement, error: RowRefusedError, isHeld: boolean): void;
}

export interface SettlerOptions {
  readonly store: Pick<RelayStore, "settle" | "abandonSessions">;
  readonly keeper: Pick<LeaseKeeper, "fence" | "epochOf" | "leftMs">;
  readonly settings: Pick<RelaySettings, "batchSize" | "sendingMark" | "retention" | "reach" | "metrics">;
  readonly clock: Clock;
  /**
   * Without a claim token (lock_version or delivery_count) a settle is retried only once the old
   * one is proven dead (rule: claim-token).
   */
  readonly hasClaimToken: boolean;
  readonly events: SettlerEvents;
}

export interface Settler {
  submit(settlements: readonly Settlement[]): void;
  readonly waiting: number;
  idle(): Promise<void>;
}

/** Delay before a locked row is written again. */
const HELD_MS = 500;

export function createSettler(options: SettlerOptions): Settler {
  const { store, keeper, settings, clock, hasClaimToken, events } = options;
  let queue: Settlement[] = [];
  /** Due again, in separate batches, since a batch has one start of its attempts. */
  const again: (readonly Settlement[])[] = [];
  const held = new Set<Promise<void>>();
  /** Refused and reported; true: held. */
  const refused = new WeakMap<InFlight, boolean>();
  let heldCount = 0;
  let working = 0;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (queue.length + again.length > 0) {
      const batch = again.shift() ?? queue.splice(0, settings.batchSize * 2);
      working = batch.length;
      await writeBatch(batch);
      working = 0;
    }
    running = undefined;
  }

  /** Never rejects. */
  async function writeBatch(batch: readonly Settlement[]): Promise<void> {
    let left = batch;
    for (let tries = 1; left.length > 0; tries += 1) {
      left = dropLost(left);
      if (left.length === 0) return;
      try {
        await settings.reach("beforeSettle");
        // Without a token, an earlier copy still running on the server could hit a later claim of
        // the row.
        if (tries > 1 && !hasClaimToken) await store.abandonSessions();
        const startedMs = clock.monotonicMs();
        const unmatched = await store.settle({
          fence: keeper.fence(),
          outcomes: left.map(({ outcome, written }) => written ?? outcome),
          elapsedMs: Math.round(startedMs - Math.min(...left.map((settlement) => settlement.startedMs))),
          from: settings.sendingMark === "on" ? "sending" : "pending",
          onSent: settings.retention.keepMs === 0 ? settings.retention.onSent : "keep",
        });
        settings.metrics.observe("rowpost_settle_duration_ms", {}, clock.monotonicMs() - startedMs);
        await settings.reach("settled");
        report(left, unmatched);
        return;
      } catch (error) {
        if (error instanceof RowRefusedError) return await writeRefused(left, error);
        events.onDatabaseError(error);
        await clock.sleep(retryPauseMs(tries));
      }
    }
  }

  /**
   * Halves the batch until the refused row is alone: about 2 log2(n) more settles for one in n. It
   * is then written with plainer texts or none; if refused even so, it waits like a locked row.
   */
  async function writeRefused(batch: readonly Settlement[], error: RowRefusedError): Promise<void> {
    const [only, ...others] = batch;
    if (only === undefined) return;
    if (others.length > 0) {
      const half = Math.ceil(batch.length / 2);
      await writeBatch(batch.slice(0, half));
      await writeBatch(batch.slice(half));
      return;
    }
    const written = inPlainerWords(only.written ?? only.outcome);
    const isHeld = written === undefined;
    const told = refused.get(only.message);
    if (told === undefined || (isHeld && !told)) {
      refused.set(only.message, isHeld);
      events.onRefused(only, error, isHeld);
    }
    if (isHeld) hold(batch);
    else await writeBatch([{ ...only, written }]);
  }

  /** Another owner may have these rows by now, and waiting would fill the window. */
  function dropLost(batch: readonly Settlement[]): readonly Settlement[] {
    return batch.filter((settlement) => {
      const { row, epoch } = settlement.message;
      if (keeper.epochOf(row.shard) === epoch && keeper.leftMs(row.shard) > 0) return true;
      events.onLost(settlement);
      return false;
    });
  }

  function report(batch: readonly Settlement[], unmatched: readonly RowNow[]): void {
    if (unmatched.length === 0) {
      events.onSettled(batch);
      return;
    }
    const rows = new Map(unmatched.map((row) => [row.id, row]));
    const settled = batch.filter(({ outcome }) => !rows.has(outcome.id));
    const waits: Settlement[] = [];
    for (const settlement of batch) {
      const row = rows.get(settlement.outcome.id);
      if (row?.isHeld === true) waits.push(settlement);
      else if (row !== undefined) events.onFenced(settlement, row);
    }
    if (waits.length > 0) hold(waits);
    if (settled.length > 0) events.onSettled(settled);
  }

  /** Messages of locked rows keep their places in the window. */
  function hold(waits: readonly Settlement[]): void {
    heldCount += waits.length;
    const pause = clock.sleep(HELD_MS).then(() => {
      held.delete(pause);
      heldCount -= waits.length;
      again.push(waits);
      running ??= run();
    });
    held.add(pause);
  }

  return {
    submit(settlements) {
      const written = settlements.filter(({ isWritten }) => isWritten);
      if (written.length > 0) events.onSettled(written);
      if (written.length === settlements.length) return;
      queue = queue.concat(written.length === 0 ? settlements : settlements.filter(({ isWritten }) => !isWritten));
      running ??= run();
    },
    get waiting() {
      return queue.length + working + heldCount + again.reduce((sum, { length }) => sum + length, 0);
    },
    async idle() {
      while (running !== undefined || held.size > 0) await (running ?? Promise.race(held));
    },
  };
}
