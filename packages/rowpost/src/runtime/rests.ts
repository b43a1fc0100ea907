/**
 * While a service that handlers call is away, messages of that kind rest, and one at a time probes
 * whether it is back.
 */
import { backoffCeilingMs } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import type { Logger } from "./logger.ts";

export interface Resting {
  /** Successes of its kind when it met a service away. */
  metAwayAt?: number | undefined;
  /** How often it has rested. */
  rested?: number | undefined;
}

export interface Rests {
  /**
   * Undefined: it may begin. Otherwise ask again once the promise resolves. `isOver`: it must not
   * be let through any more.
   */
  turn(kind: string, isOver: () => boolean): Promise<void> | undefined;
  /**
   * It may ask again once the promise resolves. Undefined: its own failure, because others of its
   * kind succeeded since it last met that, or because it has rested for most of an hour.
   */
  away(one: Resting, kind: string, error: unknown): Promise<void> | undefined;
  /** One of this kind ended in another way. */
  well(kind: string): void;
  /** Ends all waits. */
  close(): void;
}

/** Fewer in a row may be one destination of many: each message rests by itself. */
const IN_A_ROW = 10;
const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;
const MOST_RESTS = 100;
/** Kinds beyond these rest together. */
const MOST_KINDS = 1_000;

interface Kind {
  wells: number;
  inARow: number;
  /** Since it rests as a whole. */
  rests: number;
  /** One may probe. */
  mayPass: boolean;
  timer: Timer | undefined;
  waiting: { readonly resolve: () => void; readonly isOver: () => boolean }[];
}

export function createRests(clock: Clock, logger: Logger, about: Readonly<Record<string, unknown>>): Rests {
  /** Undefined: all kinds beyond the limit. */
  const kinds = new Map<string | undefined, Kind>();
  const closing = new AbortController();

  function known(name: string): Kind | undefined {
    return kinds.size === 0 ? undefined : kinds.get(keyOf(name));
  }

  function keyOf(name: string): string | undefined {
    return kinds.has(name) || kinds.size < MOST_KINDS ? name : undefined;
  }

  function kindOf(name: string): Kind {
    const key = keyOf(name);
    const kind = kinds.get(key) ?? { wells: 0, inARow: 0, rests: 0, mayPass: false, timer: undefined, waiting: [] };
    kinds.set(key, kind);
    return kind;
  }

  /** Lets one through after each rest until one succeeds. */
  function rest(kind: Kind): void {
    kind.rests += 1;
    kind.timer = clock.setTimer(() => {
      rest(kind);
      kind.mayPass = true;
      for (let next = kind.waiting.shift(); next !== undefined; next = kind.waiting.shift()) {
        next.resolve();
        if (!next.isOver()) return;
      }
    }, restMs(kind.rests));
  }

  function open(kind: Kind): void {
    kind.timer?.cancel();
    kind.timer = undefined;
    kind.rests = 0;
    kind.mayPass = false;
    for (const { resolve } of kind.waiting.splice(0)) resolve();
  }

  return {
    turn(name, isOver) {
      const kind = known(name);
      if (kind?.timer === undefined) return undefined;
      if (kind.mayPass) {
        kind.mayPass = false;
        return undefined;
      }
      return new Promise((resolve) => kind.waiting.push({ resolve, isOver }));
    },
    away(one, name, error) {
      const kind = kindOf(name);
      const rested = (one.rested ?? 0) + 1;
      if (rested > MOST_RESTS || kind.wells > (one.metAwayAt ?? kind.wells)) return undefined;
      one.metAwayAt = kind.wells;
      one.rested = rested;
      kind.inARow += 1;
      const fields = { ...about, type: name, error };
      if (kind.inARow < IN_A_ROW && kind.timer === undefined) {
        logger.warn("what a handler calls is away; its message waits, and this attempt is not counted", fields);
        return clock.sleep(restMs(rested), closing.signal);
      }
      if (kind.timer === undefined && !closing.signal.aborted) {
        logger.warn("what handlers call is away; messages of this type rest, and one at a time asks again", fields);
        rest(kind);
      }
      // Moves behind the others.
      return new Promise((resolve) => {
        if (closing.signal.aborted) resolve();
        else kind.waiting.push({ resolve, isOver: () => false });
      });
    },
    well(name) {
      const kind = known(name);
      if (kind === undefined) return;
      kind.wells += 1;
      kind.inARow = 0;
      if (kind.timer === undefined) return;
      logger.warn("what handlers call is back; messages of this type go on", { ...about, type: name });
      open(kind);
    },
    close() {
      closing.abort();
      for (const kind of kinds.values()) open(kind);
    },
  };
}

function restMs(rests: number): number {
  return backoffCeilingMs({ attempt: rests, baseMs: FIRST_MS, factor: 2, maxMs: LONGEST_MS });
}
