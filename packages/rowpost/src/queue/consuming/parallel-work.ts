/** Runs handlers side by side and settles outcomes together. */
import { setImmediate } from "node:timers/promises";
import { retryPauseMs } from "../../runtime/backoff.ts";
import { type Again, createLanes } from "../../runtime/lanes.ts";
import { createRests } from "../../runtime/rests.ts";
import { deliver, failed } from "./deliver.ts";
import type { Delivery, Outcome } from "./delivery.ts";
import type { Lanes } from "./lanes.ts";
import { type Finished, isUnrecorded, type Partition } from "./partition.ts";
import { holdUp, isHeldUp, settled, uncalled, type Work, type WorkOptions } from "./work.ts";

/** A slower head no longer delays later records. */
const SLOW_HEAD_MS = 1_000;
/** Shared by everything that has already ended. */
const ENDED = Promise.resolve(undefined);

export function createParallelWork(options: WorkOptions): Work {
  const { settings, store, place } = options;
  const { topic, group } = settings;
  const rests = createRests(settings.clock, settings.logger, { topic, group });
  const lanes: Lanes = options.lanes ?? createLanes(settings.concurrency);

  function run(partition: Partition, delivery: Delivery): Promise<Again | undefined> {
    const { signal } = partition.abort;
    const isOver = (): boolean => signal.aborted || delivery.dropped;
    if (isOver()) return ENDED;
    if (isHeldUp(partition, delivery)) return end(partition, delivery, { kind: "behind" });
    const until = rests.turn(delivery.message.type ?? "", isOver);
    delivery.rests = until !== undefined;
    if (until !== undefined) return Promise.resolve({ until });
    const outcome = deliver(settings, delivery, { tx: undefined, signal });
    const reached = (came: Outcome): Promise<Again | undefined> => {
      const waits = settings.reach("handled");
      return waits === undefined
        ? comeTo(partition, delivery, came)
        : waits.then(() => comeTo(partition, delivery, came));
    };
    return outcome instanceof Promise ? outcome.then(reached) : reached(outcome);
  }

  function comeTo(partition: Partition, delivery: Delivery, outcome: Outcome): Promise<Again | undefined> {
    const type = delivery.message.type ?? "";
    if (outcome.kind !== "away") {
      rests.well(type);
      return end(partition, delivery, outcome);
    }
    const { durationMs, error } = outcome;
    const until = rests.away(delivery, type, error);
    if (until === undefined) {
      const { countedAttempt: attempt } = delivery;
      return end(partition, delivery, failed(error, { attempt, maxAttempts: settings.maxAttempts, durationMs }));
    }
    options.reports.away(topic);
    delivery.startedMs = undefined;
    delivery.rests = true;
    settleSoon(partition);
    return Promise.resolve({ until });
  }

  function end(partition: Partition, delivery: Delivery, outcome: Outcome): Promise<undefined> {
    delivery.outcome = outcome;
    partition.letGo(delivery);
    if (isUnrecorded(delivery)) partition.unrecorded += 1;
    holdUp(settings, partition, delivery);
    settleSoon(partition);
    return ENDED;
  }

  /** After everything else that ends in this turn. */
  function settleSoon(partition: Partition): void {
    partition.settling ??= setImmediate()
      .then(() => settleAll(partition))
      .finally(() => {
        partition.settling = undefined;
        // Ended between the last look and here.
        if (!partition.abort.signal.aborted && toSettle(partition) !== undefined) settleSoon(partition);
      });
  }

  async function settleAll(partition: Partition): Promise<void> {
    const { signal } = partition.abort;
    for (let done = toSettle(partition); done !== undefined && !signal.aborted; done = toSettle(partition)) {
      if (!(await write(done, signal))) return options.onFencedOut(partition);
      await settled(options, partition, done);
    }
  }

  /**
   * The finished head; otherwise messages behind a slow head, which a restart would repeat, or
   * behind a slow key, which would fill the window.
   */
  function toSettle(partition: Partition): Finished | undefined {
    const fills = partition.unrecorded > settings.batchSize / 2;
    return partition.finished() ?? (fills || isHeadSlow(partition) ? partition.finishedAhead() : undefined);
  }

  function isHeadSlow({ window: [head] }: Partition): boolean {
    const { startedMs, outcome, rests: isResting } = head ?? {};
    if (isResting === true) return true;
    return startedMs !== undefined && outcome === undefined && settings.clock.monotonicMs() - startedMs >= SLOW_HEAD_MS;
  }

  /** Returns false when the partition is no longer ours. */
  async function write({ settlement }: Finished, signal: AbortSignal): Promise<boolean> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await settings.reach("before settle");
        const isOurs = await store.settle(settings.owner, settlement, place);
        if (isOurs) await settings.reach("after settle");
        return isOurs;
      } catch (error) {
        // It may have taken effect: repeating the same write is harmless, adding to it is not.
        settings.logger.warn("could not write what was consumed", { topic: settings.topic, error });
        await settings.clock.sleep(retryPauseMs(failures + 1), signal);
      }
    }
    return false;
  }

  return {
    close: () => rests.close(),
    look(partition) {
      if (partition.settling === undefined && isHeadSlow(partition)) settleSoon(partition);
    },
    begin(partition, deliveries) {
      const isAlone = partition.careful.fresh + partition.careful.again > 0;
      for (const delivery of deliveries) {
        const outcome = uncalled(delivery);
        if (outcome !== undefined) {
          void end(partition, delivery, outcome);
          continue;
        }
        const { orderingKey } = delivery.message;
        const lane = orderingKey === null ? undefined : `${partition.partition} ${orderingKey}`;
        lanes.add({ partition: partition.partition, lane, isAlone }, () => run(partition, delivery));
      }
    },
  };
}
