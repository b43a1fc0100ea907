/**
 * From a delivery to its settle. Two ways: handlers side by side, whose outcomes are settled as
 * many at a time as have come together; and, with `transactional`, one after the other within the
 * transaction that settles them.
 */
import { setImmediate } from "node:timers/promises";
import { retryPauseMs } from "../../runtime/backoff.ts";
import { describeError, RowpostError } from "../../runtime/errors.ts";
import type { Executor, Transaction } from "../../transactions/executor.ts";
import type { ConsumerPlace, ConsumptionStore } from "../store.ts";
import { deliver, failed } from "./deliver.ts";
import { createLanes } from "./lanes.ts";
import type { ConsumerSettings } from "./options.ts";
import { type Delivery, holdsUp, type Partition } from "./partition.ts";

export interface WorkOptions {
  readonly settings: ConsumerSettings;
  readonly store: ConsumptionStore;
  readonly place: ConsumerPlace;
  /** The partition is not ours any more. */
  readonly onFencedOut: (partition: Partition) => void;
  /** Deliveries have left the partition. */
  readonly onSettled: (partition: Partition) => void;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
}

export interface Work {
  /** Deliveries have been put into the partition. */
  begin(partition: Partition, deliveries: readonly Delivery[]): void;
}

/** Handlers side by side. */
export function createParallelWork(options: WorkOptions): Work {
  const { settings, store, place } = options;
  const lanes = createLanes(settings.concurrency);

  async function run(partition: Partition, delivery: Delivery): Promise<void> {
    const { signal } = partition.abort;
    if (signal.aborted || delivery.dropped) return;
    delivery.started = true;
    if (isHeldUp(partition, delivery)) delivery.outcome = { kind: "behind" };
    else {
      delivery.outcome = await deliver(settings, delivery, { tx: undefined, signal });
      await settings.reach("handled");
    }
    holdUp(settings, partition, delivery);
    settleSoon(partition);
  }

  /** After what else comes to its end in this turn of the event loop. */
  function settleSoon(partition: Partition): void {
    partition.settling ??= setImmediate()
      .then(() => settleAll(partition))
      .finally(() => {
        partition.settling = undefined;
        // Came to its end between the last look and here.
        if (!partition.abort.signal.aborted && partition.finished() !== undefined) settleSoon(partition);
      });
  }

  async function settleAll(partition: Partition): Promise<void> {
    const { signal } = partition.abort;
    let failures = 0;
    for (let done = partition.finished(); done !== undefined && !signal.aborted; done = partition.finished()) {
      try {
        await settings.reach("before settle");
        if (!(await store.settle(settings.owner, done.settlement, place))) {
          options.onFencedOut(partition);
          return;
        }
        await settings.reach("after settle");
        failures = 0;
      } catch (error) {
        // Perhaps it took effect: to write the same again changes nothing then.
        failures += 1;
        settings.logger.warn("could not write what was consumed", { topic: settings.topic, error });
        await settings.clock.sleep(retryPauseMs(failures), signal);
        continue;
      }
      partition.remove(done);
      await letGo(options, partition, done.settlement.released);
      options.onSettled(partition);
    }
  }

  return {
    begin(partition, deliveries) {
      for (const delivery of deliveries) {
        if (delivery.message.dueInMs > 0 && !delivery.again) {
          delivery.outcome = { kind: "delayed", dueInMs: delivery.message.dueInMs };
          settleSoon(partition);
          continue;
        }
        const { orderingKey } = delivery.message;
        const lane = orderingKey === null ? undefined : `${partition.partition} ${orderingKey}`;
        lanes.add(lane, () => run(partition, delivery));
      }
    },
  };
}

/** An earlier message of its key has failed; a redelivery is that one, or what comes next. */
function isHeldUp({ heldUp }: Partition, { message, again }: Delivery): boolean {
  return !again && message.orderingKey !== null && heldUp.has(message.orderingKey);
}

/** At once: the next one of the key may begin before this one is settled. */
function holdUp({ onFailed }: WorkOptions["settings"], { heldUp }: Partition, { message, outcome }: Delivery): void {
  if (onFailed === "block" && message.orderingKey !== null && holdsUp(outcome)) heldUp.add(message.orderingKey);
}

/** Keys of which nothing waits any more, neither in the table nor on its way there. */
async function letGo(
  { store, settings }: WorkOptions,
  partition: Partition,
  released: readonly string[] = [],
): Promise<void> {
  if (released.length === 0) return;
  // What is due now need not wait for the next look.
  partition.lookedAgainMs = Number.NEGATIVE_INFINITY;
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

/** A transaction takes no further message after this long: what it has locked waits for it. */
const LONG_TRANSACTION_MS = 200;
/** Times that a message is tried again, uncounted, after what may be somebody else's fault. */
const UNCOUNTED_TRIES = 5;

class FencedOut extends Error {}

/** Handlers one after the other, within the transaction that settles them. */
export function createTransactionalWork(options: WorkOptions): Work {
  const { settings, store, place } = options;

  async function workThrough(partition: Partition): Promise<void> {
    const { signal } = partition.abort;
    let failures = 0;
    /** Deliveries that go one by one, because a transaction with them failed as a whole. */
    let alone = 0;
    while (!signal.aborted) {
      const [redelivery] = partition.again.values();
      const batch = redelivery === undefined ? partition.window.slice(0, alone > 0 ? 1 : undefined) : [redelivery];
      if (batch.length === 0) return;
      try {
        await commit(partition, batch);
        failures = 0;
        alone = Math.max(0, alone - 1);
      } catch (error) {
        if (error instanceof FencedOut) {
          options.onFencedOut(partition);
          return;
        }
        failures += 1;
        for (const delivery of batch) delivery.outcome = undefined;
        if (batch.length > 1) {
          alone = batch.length;
          continue;
        }
        if (await isTransient(error, failures, signal)) continue;
        await giveUp(partition, batch[0] as Delivery, error);
      }
    }
  }

  async function isTransient(error: unknown, failures: number, signal: AbortSignal): Promise<boolean> {
    const mayPass = error instanceof RowpostError && error.retriable;
    settings.logger.warn("a transaction of the consumer failed", { topic: settings.topic, error });
    await settings.clock.sleep(retryPauseMs(failures), signal);
    return mayPass && failures < UNCOUNTED_TRIES;
  }

  /** The effects of the batch, its records and the progress: all of it, or nothing. */
  async function commit(partition: Partition, batch: readonly Delivery[]): Promise<void> {
    const done = await options.transaction(async (tx) => {
      const handled: Delivery[] = [];
      const startMs = settings.clock.monotonicMs();
      for (const delivery of batch) {
        if (delivery.dropped) break;
        delivery.started = true;
        await handleIn(tx, partition, delivery);
        holdUp(settings, partition, delivery);
        await settings.reach("handled");
        handled.push(delivery);
        if (settings.clock.monotonicMs() - startMs > LONG_TRANSACTION_MS) break;
      }
      const settlement = partition.settlementOf(handled);
      await settings.reach("within settle");
      // Last, so that the lease can be renewed meanwhile; the row stays locked until the commit.
      if (!(await store.settleIn(tx, settings.owner, settlement, place))) throw new FencedOut();
      await settings.reach("before settle");
      return { deliveries: handled, settlement };
    });
    await settings.reach("after settle");
    partition.remove(done);
    await letGo(options, partition, done.settlement.released);
    options.onSettled(partition);
  }

  /** A handler that fails takes back what it has written, and nothing else. */
  async function handleIn(tx: Transaction, partition: Partition, delivery: Delivery): Promise<void> {
    if (delivery.message.dueInMs > 0 && !delivery.again) {
      delivery.outcome = { kind: "delayed", dueInMs: delivery.message.dueInMs };
      return;
    }
    if (isHeldUp(partition, delivery)) {
      delivery.outcome = { kind: "behind" };
      return;
    }
    await run(tx, "SAVEPOINT rowpost_message");
    delivery.outcome = await deliver(settings, delivery, { tx, signal: partition.abort.signal });
    if (delivery.outcome.kind === "failed") await run(tx, "ROLLBACK TO SAVEPOINT rowpost_message");
    await run(tx, "RELEASE SAVEPOINT rowpost_message");
  }

  /** Not even alone: a failed attempt, written without a transaction of the user's. */
  async function giveUp(partition: Partition, delivery: Delivery, error: unknown): Promise<void> {
    delivery.outcome = failed(error, {
      attempt: delivery.countedAttempt,
      maxAttempts: settings.maxAttempts,
      durationMs: 0,
    });
    holdUp(settings, partition, delivery);
    const settlement = partition.settlementOf([delivery]);
    try {
      if (!(await store.settle(settings.owner, settlement, place))) {
        options.onFencedOut(partition);
        return;
      }
    } catch (again) {
      settings.logger.warn("could not write what was consumed", { error: describeError(again) });
      delivery.outcome = undefined;
      return;
    }
    partition.remove({ deliveries: [delivery], settlement });
    options.onSettled(partition);
  }

  return {
    begin(partition) {
      partition.settling ??= workThrough(partition).finally(() => {
        partition.settling = undefined;
      });
    },
  };
}

async function run(tx: Executor, text: string): Promise<void> {
  await tx.run({ name: "savepoint", text, params: [] });
}
