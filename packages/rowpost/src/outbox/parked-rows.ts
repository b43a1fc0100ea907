/**
 * Rows whose broker is away, silent or slow, while others work: they must not fill the scans of the others (rule R12). They are parked, for
 * about as long as their outlet has been stopped, so that each is written a few times in a long outage and not every second; and brought forward
 * as soon as their outlet takes messages again, or is to be probed with one.
 *
 * Which rows are parked is remembered here as a hint. What is not remembered, by this relay or by the one that takes over, comes due by itself.
 */
import { describeError } from "../runtime/errors.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Outlet, Outlets } from "./outlets.ts";
import type { RelaySettings } from "./relay-options.ts";
import type { RelayStore, RowToken, ScannedMessage } from "./relay-store.ts";
import { compareIds } from "./row-id.ts";
import { parkedToken, scannedToken } from "./row-token.ts";

/** An outlet that took nothing for this long is stopped; before, it is between two batches, and its rows go soon. */
const STOPPED_AFTER_MS = 500;
/** Shortest and longest parking. The longest is how late a row may be when the relay that had parked it died meanwhile. */
const SHORTEST_MS = 2_000;
const LONGEST_MS = 60_000;
/** Rows of stopped outlets are parked when they took this share of a scan. Less than that costs less to look at than to write. */
const PARK_SHARE = 0.05;
/** Rows brought forward for one probe: the first ones may wait for others of their ordering keys. */
const PROBE_ROWS = 20;
/** Rows remembered, about 100 bytes each. Beyond that so many come due every second that none needs to be brought forward. */
const REMEMBERED_ROWS = 100_000;

export interface ParkedRowsOptions {
  readonly store: Pick<RelayStore, "housekeeping">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly outlets: Outlets;
  readonly settings: Pick<RelaySettings, "clock" | "batchSize" | "logger">;
  /** Rows have come forward. */
  readonly wake: () => void;
}

export interface ParkedRows {
  /** Of rows that rest: those whose outlet is stopped, when they are so many that they are to be parked. */
  toPark(resting: readonly ScannedMessage[], scanned: number): readonly ScannedMessage[];
  park(rows: readonly ScannedMessage[]): Promise<void>;
  /** Brings rows forward for outlets that could take more than the last scan had for them. Beside the rounds. */
  release(): void;
  /** The row is in the window. */
  taken(message: Pick<ScannedMessage, "id" | "topic">): void;
  /** Nothing is parked, as far as this relay knows. */
  readonly empty: boolean;
  /** Resolves when nothing is under way. Never rejects. */
  idle(): Promise<void>;
}

/** The rows of one outlet, taken in the order of their ids: a later message of an ordering key could not go before an earlier one. */
interface Pile {
  readonly tokens: Map<string, RowToken>;
  /** Greatest first, so that the next one is the last. May name rows that are not in `tokens` any more, or are twice here. */
  ids: string[];
  /** Ids that were added since `ids` was sorted. */
  added: string[];
}

function takeFrom(pile: Pile, most: number): readonly RowToken[] {
  if (pile.added.length > 0) pile.ids = pile.ids.concat(pile.added).sort((left, right) => compareIds(right, left));
  pile.added = [];
  const taken: RowToken[] = [];
  while (taken.length < most) {
    const id = pile.ids.pop();
    if (id === undefined) break;
    const token = pile.tokens.get(id);
    if (token !== undefined) taken.push(token);
    pile.tokens.delete(id);
  }
  return taken;
}

function putBack(pile: Pile, token: RowToken): void {
  pile.added.push(token.id);
  pile.tokens.set(token.id, token);
}

/** Makes the memory of one relay's parked rows. */
export function createParkedRows({ store, keeper, outlets, settings, wake }: ParkedRowsOptions): ParkedRows {
  const { clock } = settings;
  const piles = new Map<Outlet, Pile>();
  let forgottenUntilMs = 0;
  let running: Promise<void> | undefined;

  function size(): number {
    let sum = 0;
    for (const { tokens } of piles.values()) sum += tokens.size;
    return sum;
  }

  function remember(rows: readonly ScannedMessage[], outlet: Outlet, parkMs: number): void {
    const pile = piles.get(outlet) ?? { tokens: new Map<string, RowToken>(), ids: [], added: [] };
    piles.set(outlet, pile);
    let left = REMEMBERED_ROWS - size();
    for (const row of rows) {
      const isKnown = pile.tokens.has(row.id);
      if (!isKnown && left <= 0) {
        forgottenUntilMs = Math.max(forgottenUntilMs, clock.monotonicMs() + parkMs);
        continue;
      }
      if (!isKnown) {
        pile.added.push(row.id);
        left -= 1;
      }
      pile.tokens.set(row.id, parkedToken(scannedToken(row)));
    }
  }

  function next(): ReadonlyMap<Pile, readonly RowToken[]> {
    const taken = new Map<Pile, readonly RowToken[]>();
    for (const [outlet, pile] of piles) {
      const room = pile.tokens.size === 0 ? 0 : outlets.roomOf(outlet);
      if (room > 0) taken.set(pile, takeFrom(pile, outlet.gate.open ? Math.min(room, settings.batchSize) : PROBE_ROWS));
    }
    return taken;
  }

  async function bringForward(taken: ReadonlyMap<Pile, readonly RowToken[]>): Promise<void> {
    try {
      await store.housekeeping.park({ fence: keeper.fence(), rows: [...taken.values()].flat(), parkMs: 0 });
      wake();
    } catch (error) {
      // Still parked, or brought forward without an answer: then the next try finds none of them.
      for (const [pile, tokens] of taken) for (const token of tokens) putBack(pile, token);
      settings.logger.warn("parked rows could not be brought forward; it is tried again", {
        error: describeError(error),
      });
    }
  }

  return {
    toPark(resting, scanned) {
      const stopped = resting.filter(({ topic }) => outlets.stoppedMs(outlets.of(topic)) >= STOPPED_AFTER_MS);
      return stopped.length >= scanned * PARK_SHARE ? stopped : [];
    },
    async park(rows) {
      const fence = keeper.fence();
      for (const outlet of new Set(rows.map(({ topic }) => outlets.of(topic)))) {
        const own = rows.filter(({ topic }) => outlets.of(topic) === outlet);
        const parkMs = Math.ceil(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, outlets.stoppedMs(outlet))));
        await store.housekeeping.park({ fence, rows: own.map(scannedToken), parkMs });
        remember(own, outlet, parkMs);
      }
    },
    release() {
      if (running !== undefined) return;
      const taken = next();
      if (taken.size === 0) return;
      running = bringForward(taken).finally(() => {
        running = undefined;
      });
    },
    taken({ id, topic }) {
      piles.get(outlets.of(topic))?.tokens.delete(id);
    },
    get empty() {
      return running === undefined && size() === 0 && clock.monotonicMs() >= forgottenUntilMs;
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}
