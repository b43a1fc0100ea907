/**
 * From a delivery to its settle, in one of two ways: side by side (parallel-work.ts), or one after
 * the other within a transaction (transactional-work.ts). Here is what both do.
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
  /** The partition is not ours any more. */
  readonly onFencedOut: (partition: Partition) => void;
  /** Deliveries have left the partition. */
  readonly onSettled: (partition: Partition) => void;
  /** Whose turn it is to be handled; default: so many at once as the settings say. */
  readonly lanes?: Lanes | undefined;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
}

export interface Work {
  /** Deliveries have been put into the partition. */
  begin(partition: Partition, deliveries: readonly Delivery[]): void;
  /** Time has passed: what is finished may be written without what is in front of it. */
  look(partition: Partition): void;
  /** What waits for somebody who is away waits no longer. */
  close(): void;
}

/** What comes of it without a call of the handler; undefined: it is to be called. */
export function uncalled({ again, decided, message: { dueInMs } }: Delivery): Outcome | undefined {
  return decided ?? (dueInMs > 0 && !again ? { kind: "delayed", dueInMs } : undefined);
}

/** An earlier message of its key has failed; a redelivery is that one, or what comes next. */
export function isHeldUp({ heldUp }: Partition, { message, again }: Delivery): boolean {
  return !again && message.orderingKey !== null && heldUp.has(message.orderingKey);
}

/** At once: the next one of the key may begin before this one is settled. */
export function holdUp(
  { onFailed }: WorkOptions["settings"],
  { heldUp }: Partition,
  { message, outcome }: Delivery,
): void {
  if (onFailed === "block" && message.orderingKey !== null && holdsUp(outcome)) heldUp.add(message.orderingKey);
}

/** It is written: takes the deliveries out, and lets go the keys that nothing holds up any more. */
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

/** Keys of which nothing waits any more, neither in the table nor on its way there. */
async function letGo(
  { store, settings }: WorkOptions,
  partition: Partition,
  released: readonly string[] = [],
): Promise<void> {
  if (released.length === 0) return;
  // What is due now need not wait for the next look.
  partition.dueAtMs = Number.NEGATIVE_INFINITY;
  let waiting: Set<string>;
  try {
    waiting = new Set(await store.heldUp(partition.partition, released));
  } catch (error) {
    // They stay held up: the next one of each comes to wait, is due at once, and asks again.
    settings.logger.warn("could not ask which keys wait", { topic: settings.topic, error });
    return;
  }
  for (const delivery of [...partition.window, ...partition.again.values()]) {
    if (delivery.message.orderingKey !== null && holdsUp(delivery.outcome)) waiting.add(delivery.message.orderingKey);
  }
  for (const key of released) if (!waiting.has(key)) partition.heldUp.delete(key);
}
