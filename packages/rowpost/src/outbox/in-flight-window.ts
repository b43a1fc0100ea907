/**
 * The in-flight window: every message that this relay has claimed and not settled yet, or is about to claim. (How many there may be, outlets.ts
 * says.) It keeps the relay from claiming a message or an ordering key twice, and tells when a shard has nothing under way any more (rule R11).
 */
import type { ScannedMessage } from "./relay-store.ts";

/** A message under way. */
export interface WindowEntry {
  readonly message: ScannedMessage;
  /** Epoch of its shard when it was claimed. */
  readonly epoch: number;
}

export interface InFlightWindow {
  readonly size: number;
  /** In flight, or left so recently that a scan may still show it as waiting. */
  excludes(id: string): boolean;
  holds(id: string): boolean;
  /** A message of this ordering key is in flight. */
  keyBusy(orderingKey: string): boolean;
  add(entry: WindowEntry): void;
  /** The message has been settled, or its claim came to nothing. */
  remove(id: string): void;
  countOf(shard: number): number;
  entries(): IterableIterator<WindowEntry>;
  /** Call before a scan starts; the number goes to {@link InFlightWindow.scanReturned}. */
  scanStarts(): number;
  /** From here on a message that left before that scan started may be taken up again (rule R8). */
  scanReturned(scan: number): void;
}

/** What is told of each message that enters the window or leaves it. */
export interface WindowListener {
  added(entry: WindowEntry): void;
  removed(entry: WindowEntry): void;
}

/** Makes an empty window. */
export function createInFlightWindow(listener: Partial<WindowListener> = {}): InFlightWindow {
  const held = new Map<string, WindowEntry>();
  const busyKeys = new Map<string, number>();
  const byShard = new Map<number, number>();
  /** id -> number of the newest scan that had started when it left: that scan may have read the row before its settle committed. */
  const leaving = new Map<string, number>();
  let scans = 0;

  function count<Key>(map: Map<Key, number>, key: Key, by: 1 | -1): void {
    const next = (map.get(key) ?? 0) + by;
    if (next === 0) map.delete(key);
    else map.set(key, next);
  }

  return {
    get size() {
      return held.size;
    },
    excludes: (id) => held.has(id) || leaving.has(id),
    holds: (id) => held.has(id),
    keyBusy: (orderingKey) => busyKeys.has(orderingKey),
    add(entry) {
      const { id, orderingKey, shard } = entry.message;
      held.set(id, entry);
      count(byShard, shard, 1);
      if (orderingKey !== null) count(busyKeys, orderingKey, 1);
      listener.added?.(entry);
    },
    remove(id) {
      const entry = held.get(id);
      if (entry === undefined) return;
      held.delete(id);
      leaving.set(id, scans);
      count(byShard, entry.message.shard, -1);
      const { orderingKey } = entry.message;
      if (orderingKey !== null) count(busyKeys, orderingKey, -1);
      listener.removed?.(entry);
    },
    countOf: (shard) => byShard.get(shard) ?? 0,
    entries: () => held.values(),
    scanStarts: () => ++scans,
    scanReturned(scan) {
      for (const [id, leftDuring] of leaving) if (leftDuring < scan) leaving.delete(id);
    },
  };
}
