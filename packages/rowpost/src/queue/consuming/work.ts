/**
 * Shared by parallel-work.ts (side by side) and transactional-work.ts (in order, within a
 * transaction).
 */
import type { HandlingReports } from "../../runtime/handling-reports.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { ConsumerPlace, ConsumptionStore } from "../store.ts";
import { type Delivery, holdsUp, type Outcome } from "./delivery.ts";
import type { Lanes } from "./lanes.ts";
import { tellWritten } from "./observed.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Finished, Partition } from "./partition.ts";

export interface WorkOptions {
  readonly settings: ConsumerSettings;
  readonly store: Pick<ConsumptionStore, "heldUp" | "isConflict" | "settle" | "settleIn">;
  readonly place: ConsumerPlace;
  readonly reports: HandlingReports;
  /** This member no longer holds the partition. */
  readonly onFencedOut: (partition: Partition) => void;
  readonly onSettled: (partition: Partition) => void;
  /** Default: the `concurrency` of the settings. */
  readonly lanes?: Lanes | undefined;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
}

export interface Work {
  begin(partition: Partition, deliveries: readonly Delivery[]): void;
  /** Over time, messages finished behind an open one may be written. */
  look(partition: Partition): void;
  /** Ends the waits for services that are away. */
  close(): void;
}

/** Undefined: the handler must be called. */
export function uncalled({ again, decided, message: { dueInMs } }: Delivery): Outcome | undefined {
  return decided ?? (dueInMs > 0 && !again ? { kind: "delayed", dueInMs } : undefined);
}

/** A redelivery is the failed message itself, or the next in line. */
export function isHeldUp({ heldUp }: Partition, { message, again }: Delivery): boolean {
  return !again && message.orderingKey !== null && heldUp.has(message.orderingKey);
}

/** At once: the next message may begin before this one is settled. */
export function holdUp(
  { onFailed }: WorkOptions["settings"],
  { heldUp }: Partition,
  { message, outcome }: Delivery,
): void {
  if (onFailed === "block" && message.orderingKey !== null && holdsUp(outcome)) heldUp.add(message.orderingKey);
}

export async function settled(options: WorkOptions, partition: Partition, done: Finished): Promise<void> {
  const { reports, settings } = options;
  if (reports.isHeard) for (const delivery of done.deliveries) tellWritten(reports, settings, delivery);
  partition.remove(done);
  for (const delivery of done.deliveries) {
    delivery.over?.(true);
    delete delivery.over;
  }
  await letGo(options, partition, done.settlement.released);
  options.onSettled(partition);
}

async function letGo(
  { store, settings }: WorkOptions,
  partition: Partition,
  released: readonly string[] = [],
): Promise<void> {
  if (released.length === 0) return;
  // Due now, without waiting for the next look.
  partition.dueAtMs = Number.NEGATIVE_INFINITY;
  let waiting: Set<string>;
  try {
    waiting = new Set(await store.heldUp(partition.partition, released));
  } catch (error) {
    // The keys stay held up: their next messages wait, are due at once, and ask again.
    settings.logger.warn("could not ask which keys wait", { topic: settings.topic, error });
    return;
  }
  for (const delivery of [...partition.window, ...partition.again.values()]) {
    if (delivery.message.orderingKey !== null && holdsUp(delivery.outcome)) waiting.add(delivery.message.orderingKey);
  }
  for (const key of released) if (!waiting.has(key)) partition.heldUp.delete(key);
}
