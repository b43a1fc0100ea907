/**
 * Bounds the loads (a message, or the messages of a request) and bytes that a broker has in flight,
 * over all its calls.
 *
 * Destinations share it fairly (`fair-shares.ts`): one that hangs keeps what it has and gets no
 * more, while the others use the rest.
 */
import { createFairShares } from "../../runtime/fair-shares.ts";

export interface Window {
  /** Takes a place and its bytes. False if the destination has to wait. */
  take(destination: string, bytes: number): boolean;
  /** Returns both, and calls waiters that now have room. */
  giveBack(destination: string, bytes: number): void;
  /** Calls back once when `take` with these bytes would succeed, in order of asking. */
  onRoom(destination: string, bytes: number, callback: () => void): void;
  stopWaiting(callback: () => void): void;
}

/** Limits of a single destination. All together may have twice as much in flight. */
export interface WindowWidth {
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
  const waitingFor = new Map<string, number>();
  let called: string | undefined;

  // A load larger than its share goes when its destination has nothing else in flight.
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
    // Waiters added during the loop wait for the next time, and none overtakes another of its
    // destination.
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
