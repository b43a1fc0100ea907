/**
 * What a member does after another one fell silent: it died, or its event loop stood still, and a
 * message may be the cause. Which partitions that concerns, the mark of each begin, and leases that
 * outlive a handler which only blocks.
 */
import type { LeaseKeeperOptions } from "../../relay/leases/lease-keeper.ts";
import type { ConsumerPlace, ConsumptionStore } from "../store.ts";
import type { Delivery } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Partition } from "./partition.ts";

const LONGEST_LEASE_MS = 600_000;

export interface Carefulness {
  /** How long leases are now. */
  readonly leaseMs: number;
  /** These partitions were left by members that fell silent. */
  acquired(silent: readonly number[]): void;
  /** True once: its last owner fell silent. */
  isSilent(partition: number): boolean;
  /** It is held no more, before all of what may be the cause had its turn. */
  dropped(partition: Partition): void;
  /** Before each heartbeat. */
  beats(held: Iterable<Partition>): void;
  /** Writes that it begins; false: the partition is not ours any more. */
  mark(partition: Partition, delivery: Delivery): Promise<boolean>;
}

export interface CarefulnessOptions {
  readonly settings: Pick<ConsumerSettings, "leaseMs" | "owner" | "logger" | "topic" | "group">;
  readonly store: Pick<ConsumptionStore, "settle">;
  readonly place: ConsumerPlace;
  readonly heartbeat: () => Promise<void>;
  readonly onFencedOut: (partition: Partition) => void;
}

/** For the keeper of the leases: they may get longer. */
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
      // Twice as long with each attempt over which a member fell silent.
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
