/**
 * Caution after another member fell silent: it died or its event loop blocked, perhaps because of a
 * message. Messages are marked as they begin, and leases grow to outlive a handler that only
 * blocks.
 */
import type { LeaseKeeperOptions } from "../../relay/leases/lease-keeper.ts";
import type { ConsumerPlace, ConsumptionStore } from "../store.ts";
import type { Delivery } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Partition } from "./partition.ts";

const LONGEST_LEASE_MS = 600_000;

export interface Carefulness {
  readonly leaseMs: number;
  /** Partitions taken from members that fell silent. */
  acquired(silent: readonly number[]): void;
  /** Returns true once if the last owner fell silent. */
  isSilent(partition: number): boolean;
  /** Dropped before every suspect message had its turn. */
  dropped(partition: Partition): void;
  beats(held: Iterable<Partition>): void;
  /** Returns false when this member no longer holds the partition. */
  mark(partition: Partition, delivery: Delivery): Promise<boolean>;
}

export interface CarefulnessOptions {
  readonly settings: Pick<ConsumerSettings, "leaseMs" | "owner" | "logger" | "topic" | "group">;
  readonly store: Pick<ConsumptionStore, "settle">;
  readonly place: ConsumerPlace;
  readonly heartbeat: () => Promise<void>;
  readonly onFencedOut: (partition: Partition) => void;
}

export function leaseSettings(
  { label, heartbeatMs, clock }: ConsumerSettings,
  leaseMs: () => number,
): LeaseKeeperOptions["settings"] {
  return {
    label,
    heartbeatMs,
    clock,
    get leaseMs() {
      return leaseMs();
    },
  };
}

export function createCarefulness(options: CarefulnessOptions): Carefulness {
  const { settings, store, place } = options;
  const { logger, topic, group } = settings;
  const left = new Set<number>();
  let { leaseMs } = settings;

  return {
    get leaseMs() {
      return leaseMs;
    },
    acquired(silent) {
      if (silent.length === 0) return;
      for (const partition of silent) left.add(partition);
      const about = { topic, group, partitions: silent };
      logger.warn("a member fell silent; what it may have begun goes one by one", about);
    },
    isSilent: (partition) => left.delete(partition),
    dropped({ partition, careful }) {
      if (careful.again + careful.fresh > 0) left.add(partition);
    },
    beats(held) {
      if (![...held].some(({ careful }) => careful.again + careful.fresh > 0)) ({ leaseMs } = settings);
    },
    async mark(partition, delivery) {
      // Doubles with each attempt that silenced a member.
      const longerMs = Math.min(LONGEST_LEASE_MS, settings.leaseMs * 2 ** delivery.countedAttempt);
      if (longerMs > leaseMs) {
        leaseMs = longerMs;
        await options.heartbeat();
      }
      if (await store.settle(settings.owner, partition.markOf(delivery), place)) return true;
      options.onFencedOut(partition);
      return false;
    },
  };
}
