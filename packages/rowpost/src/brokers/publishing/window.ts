/**
 * How much a broker has handed over that has no answer yet, over all its calls: a number of loads
 * (a message, or the messages of one request), and their bytes.
 *
 * Shared fairly among destinations (`fair-shares.ts`): one that hangs keeps what it has and gets no
 * more, and the others go on with the rest.
 */
import { createFairShares } from "../../runtime/fair-shares.ts";

export interface Window {
  /** Takes a place and its bytes; false when the destination has to wait. */
  take(destination: string, bytes: number): boolean;
  /** Gives both back, and calls those that wait and now have room. */
  giveBack(destination: string, bytes: number): void;
  /** Calls back once when `take` with these bytes would succeed, in order of asking. */
  onRoom(destination: string, bytes: number, callback: () => void): void;
  /** Takes the callback back. */
  stopWaiting(callback: () => void): void;
}

/** What a single destination may have under way; all of them together at most twice as much. */
export interface WindowWidth {
  /** Default: as many as their bytes allow. */
  readonly loads?: number | undefined;
  /** Bounds memory when bodies are large. Default 32 MiB. */
  readonly bytes?: number | undefined;
}

const DEFAULT_BYTES = 33_554_432;

interface Waiting {
  readonly destination: string;
  readonly bytes: number;
}

export function createWindow({
  loads = Number.POSITIVE_INFINITY,
  bytes: width = DEFAULT_BYTES,
}: WindowWidth = {}): Window {
  const places = createFairShares({ capacity: 2 * loads });
  const volume = createFairShares({ capacity: 2 * width });
  const waiting = new Map<() => void, Waiting>();
  /** How many wait for each destination. */
  const waitingFor = new Map<string, number>();
  /** The destination whose waiter is being called. */
  let called: string | undefined;

  // A load larger than its share goes when nothing else of its destination is under way.
  const fits = (destination: string, bytes: number): boolean =>
    places.free(destination) > 0 && (bytes <= volume.free(destination) || places.usedBy(destination) === 0);

  function forget(callback: () => void): boolean {
    const known = waiting.get(callback);
    if (known === undefined) return false;
    waiting.delete(callback);
    const left = (waitingFor.get(known.destination) ?? 1) - 1;
    if (left === 0) waitingFor.delete(known.destination);
    else waitingFor.set(known.destination, left);
    return true;
  }

  function callWaiting(): void {
    // Those that come back wait for the next time; and nobody overtakes his own kind.
    let left = waiting.size;
    let passed: Set<string> | undefined;
    for (const [callback, { destination, bytes }] of waiting) {
      left -= 1;
      if (passed?.has(destination) !== true) {
        if (fits(destination, bytes)) {
          const before = called;
          called = destination;
          if (forget(callback)) callback();
          called = before;
        } else {
          passed ??= new Set();
          passed.add(destination);
        }
      }
      if (left <= 0) return;
    }
  }

  return {
    take(destination, bytes) {
      if (waitingFor.size > 0 && called !== destination && waitingFor.has(destination)) return false;
      if (!fits(destination, bytes)) return false;
      places.take(destination, 1);
      volume.take(destination, bytes);
      return true;
    },
    giveBack(destination, bytes) {
      places.giveBack(destination, 1);
      volume.giveBack(destination, bytes);
      if (waiting.size > 0) callWaiting();
    },
    onRoom(destination, bytes, callback) {
      waiting.set(callback, { destination, bytes });
      waitingFor.set(destination, (waitingFor.get(destination) ?? 0) + 1);
    },
    stopWaiting(callback) {
      if (forget(callback) && waiting.size > 0) callWaiting();
    },
  };
}
