/**
 * The window of a relay: every message claimed and not settled, or about to be claimed
 * (parking/room.ts limits them). Prevents claiming a message or a key twice, and tells when a shard
 * has nothing under way (rule: hand-over).
 */
import type { OutgoingMessage } from "../brokers/broker.ts";
import type { ScannedMessage } from "./store.ts";

export interface InFlight {
  readonly row: ScannedMessage;
  readonly outgoing: OutgoingMessage;
  readonly epoch: string;
}

export interface InFlightWindow {
  readonly size: number;
  /** In flight, or gone so recently that a scan may still show it. */
  excludes(id: string): boolean;
  holds(id: string): boolean;
  keyBusy(orderingKey: string): boolean;
  add(messages: readonly InFlight[]): void;
  remove(messages: readonly InFlight[]): void;
  countOf(shard: number): number;
  entries(): IterableIterator<InFlight>;
  /** Call before a scan starts; pass the number to {@link InFlightWindow.scanReturned}. */
  scanStarts(): number;
  /** Messages that left before that scan may be taken again (rule: listed-in-flight). */
  scanReturned(scan: number): void;
}

export interface WindowListener {
  added(messages: readonly InFlight[]): void;
  removed(messages: readonly InFlight[]): void;
}

export function createInFlightWindow(listener: Partial<WindowListener> = {}): InFlightWindow {
  const held = new Map<string, InFlight>();
  const busyKeys = new Map<string, number>();
  const byShard = new Map<number, number>();
  /**
   * The newest scan started when a message left: it may have read the row before the settle
   * committed.
   */
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
    add(messages) {
      for (const message of messages) {
        const { id, orderingKey, shard } = message.row;
        held.set(id, message);
        count(byShard, shard, 1);
        if (orderingKey !== null) count(busyKeys, orderingKey, 1);
      }
      if (messages.length > 0) listener.added?.(messages);
    },
    remove(messages) {
      const left = messages.filter(({ row }) => held.delete(row.id));
      for (const { row } of left) {
        leaving.set(row.id, scans);
        count(byShard, row.shard, -1);
        if (row.orderingKey !== null) count(busyKeys, row.orderingKey, -1);
      }
      if (left.length > 0) listener.removed?.(left);
    },
    countOf: (shard) => byShard.get(shard) ?? 0,
    entries: () => held.values(),
    scanStarts: () => ++scans,
    scanReturned(scan) {
      for (const [id, leftDuring] of leaving) if (leftDuring < scan) leaving.delete(id);
    },
  };
}
