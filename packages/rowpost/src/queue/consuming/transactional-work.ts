/** Runs handlers in order within the transaction that settles them. */
import { linkSignals, unlessAborted } from "../../runtime/abort.ts";
import { backoffMs, retryPauseMs } from "../../runtime/backoff.ts";
import { DatabaseConflictError, describeError, RowpostError, TransactionLostError } from "../../runtime/errors.ts";
import { createRests } from "../../runtime/rests.ts";
import type { Executor, Transaction } from "../../transactions/executor.ts";
import { deliver, failed } from "./deliver.ts";
import type { Delivery, Outcome } from "./delivery.ts";
import type { Together } from "./options.ts";
import type { Finished, Partition } from "./partition.ts";
import { holdUp, isHeldUp, settled, uncalled, type Work, type WorkOptions } from "./work.ts";

/** Others wait for its locks: it takes no further message after this long. */
const LONG_TRANSACTION_MS = 200;
/**
 * Uncounted retries after an error that may not be the message's fault. Limited, because a message
 * that always breaks the connection must not stop its partition forever.
 */
const UNCOUNTED_TRIES = 5;
/**
 * The same for conflicts, which pass; a lock never released must not stop the partition forever.
 */
const MOST_CONFLICTS = 100;
const CONFLICT_PAUSE = { baseMs: 20, factor: 2, maxMs: 1_000 };

class FencedOut extends Error {}

/** The handler still writes, so the transaction must not continue. */
class Late extends Error {
  readonly delivery: Delivery;

  constructor(delivery: Delivery, cause: unknown) {
    super("a handler is late", { cause });
    this.delivery = delivery;
  }
}

/** A service its handler calls is away. */
class Away extends Error {
  readonly delivery: Delivery;
  readonly met: unknown;

  constructor(delivery: Delivery, met: unknown) {
    super("what a handler calls is away");
    this.delivery = delivery;
    this.met = met;
  }
}

/** A batch failed in part, with inseparable writes. */
class Apart extends Error {}

export function createTransactionalWork(options: WorkOptions): Work {
  const { settings, store, place } = options;
  const { logger, clock, topic, group, maxAttempts, batches } = settings;
  const rests = createRests(clock, logger, { topic, group });
  /** Conflicts of a delivery alone in its transaction. */
  const conflicts = new WeakMap<Delivery, number>();
  const gathering = new Map<Partition, ReturnType<typeof linkSignals>>();
  const waitsSinceMs = new WeakMap<Partition, number>();

  async function workThrough(partition: Partition): Promise<void> {
    const { signal } = partition.abort;
    /** Failures of the first delivery after its handler ran. */
    let tries = 0;
    let failures = 0;
    /** Their common transaction failed: they go one by one. */
    let alone = 0;
    while (!signal.aborted) {
      if (batches !== undefined && alone === 0) await gathered(partition, batches);
      const [redelivery] = partition.again.values();
      const most = alone > 0 ? 1 : batches?.size;
      const batch = redelivery === undefined ? partition.window.slice(0, most) : [redelivery];
      if (redelivery === undefined) waitsSinceMs.delete(partition);
      const [first] = batch;
      if (first === undefined) return;
      const turn = rests.turn(first.message.type ?? "", () => signal.aborted || first.dropped);
      if (turn !== undefined) {
        await unlessAborted(signal, turn, () => undefined).catch(() => undefined);
        continue;
      }
      try {
        await commit(partition, batch);
        failures = 0;
        tries = 0;
        if (redelivery === undefined) alone = Math.max(0, alone - 1);
      } catch (error) {
        if (error instanceof FencedOut) return options.onFencedOut(partition);
        if (error instanceof Late && error.delivery === first) {
          await giveUp(partition, first, error.cause);
          continue;
        }
        if (error instanceof Away) {
          await rest(partition, error);
          continue;
        }
        const handlersRan = error instanceof Apart || batch.some(wasHandled);
        for (const delivery of batch) delivery.outcome = undefined;
        if (handlersRan && batch.length === 1 && store.isConflict(error)) {
          await waitForOthers(partition, first, error);
          continue;
        }
        logger.warn("a transaction of the consumer failed", { topic, error });
        failures += 1;
        if (handlersRan && batch.length > 1) {
          alone = batch.length;
          continue;
        }
        await clock.sleep(retryPauseMs(failures), signal);
        // If no handler ended, the fault is the database's.
        if (!handlersRan) continue;
        tries += 1;
        if (mayPass(error) && tries < UNCOUNTED_TRIES) continue;
        if (await giveUp(partition, first, error)) tries = 0;
      }
    }
  }

  /** The batch is full, its time has passed, or a redelivery goes first. */
  async function gathered(partition: Partition, { size, waitMs }: Together): Promise<void> {
    const { abort, again, careful, window } = partition;
    if (window.length === 0) return;
    const nowMs = clock.monotonicMs();
    const sinceMs = waitsSinceMs.get(partition) ?? nowMs;
    waitsSinceMs.set(partition, sinceMs);
    const leftMs = waitMs - (nowMs - sinceMs);
    // Careful messages come one at a time.
    const isAlone = careful.fresh + careful.again > 0;
    if (leftMs <= 0 || isAlone || again.size > 0 || window.length >= size) return;
    const waiting = linkSignals(abort.signal);
    gathering.set(partition, waiting);
    await clock.sleep(leftMs, waiting.signal);
    gathering.delete(partition);
    waiting.release();
  }

  /** The partition waits too, because its messages are handled in order. */
  async function rest(partition: Partition, { delivery, met }: Away): Promise<void> {
    const { signal } = partition.abort;
    delivery.outcome = undefined;
    const until = rests.away(delivery, delivery.message.type ?? "", met);
    if (until === undefined) {
      await giveUp(partition, delivery, met);
      return;
    }
    options.reports.away(topic);
    // A stop leaves it to the next owner.
    delivery.startedMs = undefined;
    await unlessAborted(signal, until, () => undefined).catch(() => undefined);
  }

  /** Retries the same message after a pause in which the others can finish. */
  async function waitForOthers(partition: Partition, delivery: Delivery, error: unknown): Promise<void> {
    const { id, key } = delivery.message;
    const times = (conflicts.get(delivery) ?? 0) + 1;
    conflicts.set(delivery, times);
    if ((times & (times - 1)) === 0)
      logger.warn("another transaction was in the way of a message; it is tried again, uncounted", {
        topic,
        group,
        id,
        key,
        times,
        error,
      });
    await clock.sleep(backoffMs({ attempt: times, ...CONFLICT_PAUSE }), partition.abort.signal);
    if (times < MOST_CONFLICTS) return;
    const said = `another transaction was in the way ${times} times in a row (${describeError(error)})`;
    await giveUp(partition, delivery, new DatabaseConflictError(said, { cause: error }));
  }

  /**
   * Commits effects, records and progress together. On a conflict, or a service away, commits the
   * messages before it and throws.
   */
  async function commit(partition: Partition, batch: readonly Delivery[]): Promise<void> {
    let conflict: Error | undefined;
    const done = await options.transaction(async (tx): Promise<Finished> => {
      let handled: readonly Delivery[];
      if (batches !== undefined && batch.length > 1) handled = await handleTogether(batches, tx, partition, batch);
      else ({ handled, conflict } = await handleEach(tx, partition, batch));
      const settlement = partition.settlementOf(handled);
      await settings.reach("within settle");
      // Last, so that the lease can be renewed meanwhile.
      if (!(await store.settleIn(tx, settings.owner, settlement, place))) throw new FencedOut();
      await settings.reach("before settle");
      return { deliveries: handled, settlement };
    });
    await settings.reach("after settle");
    await settled(options, partition, done);
    if (conflict !== undefined) throw conflict;
  }

  /** Each behind a savepoint, until the transaction has taken too long. */
  async function handleEach(
    tx: Transaction,
    partition: Partition,
    batch: readonly Delivery[],
  ): Promise<{ readonly handled: readonly Delivery[]; readonly conflict: Error | undefined }> {
    const { signal } = partition.abort;
    const handled: Delivery[] = [];
    const startMs = clock.monotonicMs();
    for (const delivery of batch) {
      if (delivery.dropped || signal.aborted) break;
      delivery.startedMs = clock.monotonicMs();
      const conflict = await handleIn(tx, partition, delivery);
      if (conflict !== undefined) {
        if (handled.length > 0) return { handled, conflict };
        throw conflict;
      }
      if (wasHandled(delivery)) rests.well(delivery.message.type ?? "");
      holdUp(settings, partition, delivery);
      await settings.reach("handled");
      handled.push(delivery);
      if (clock.monotonicMs() - startMs > LONG_TRANSACTION_MS) break;
    }
    return { handled, conflict: undefined };
  }

  /** All is consumed, or nothing stays. */
  async function handleTogether(
    { together }: Together,
    tx: Transaction,
    partition: Partition,
    batch: readonly Delivery[],
  ): Promise<readonly Delivery[]> {
    const { signal } = partition.abort;
    const handled = batch.filter(({ dropped }) => !dropped);
    for (const delivery of handled) {
      delivery.startedMs = clock.monotonicMs();
      delivery.outcome = uncalled(delivery) ?? (isHeldUp(partition, delivery) ? { kind: "behind" } : undefined);
    }
    const called = handled.filter(({ outcome }) => outcome === undefined);
    const outcomes = await Promise.all(
      together(() => called.map(async (each) => await deliver(settings, each, { tx, signal }))),
    );
    const bad = outcomes.find((outcome) => outcome.kind === "failed" || outcome.kind === "away");
    if (bad !== undefined) {
      // To a stop or a pause they have not begun.
      for (const delivery of handled) delivery.startedMs = undefined;
      throw new Apart("a batch failed", { cause: ("thrown" in bad && bad.thrown) || bad.error });
    }
    for (const [index, delivery] of called.entries()) {
      delivery.outcome = outcomes[index];
      rests.well(delivery.message.type ?? "");
    }
    await settings.reach("handled");
    return handled;
  }

  /**
   * Rolls back the writes of a failing handler only. Returns the error of a conflict or a service
   * away: the message is handled again.
   */
  async function handleIn(tx: Transaction, partition: Partition, delivery: Delivery): Promise<Error | undefined> {
    delivery.outcome = uncalled(delivery);
    if (delivery.outcome !== undefined) return undefined;
    if (isHeldUp(partition, delivery)) {
      delivery.outcome = { kind: "behind" };
      return undefined;
    }
    await run(tx, "SAVEPOINT rowpost_message");
    const { signal } = partition.abort;
    const outcome = await deliver(settings, delivery, { tx, signal });
    delivery.outcome = outcome;
    // It may have failed because of the signal.
    if (signal.aborted && outcome.kind !== "consumed") throw new FencedOut();
    const { failure } = tx;
    let thrown: unknown;
    if (outcome.kind === "failed") {
      if (outcome.isLate === true) throw new Late(delivery, outcome.thrown);
      ({ thrown } = outcome);
    } else if (outcome.kind === "away") {
      thrown = outcome.error;
    } else {
      try {
        await run(tx, "RELEASE SAVEPOINT rowpost_message");
        return undefined;
      } catch {
        thrown = wentOn(failure);
        delivery.outcome = failedAttempt(delivery, thrown);
      }
    }
    // Throws if the database has ended the transaction.
    await run(tx, "ROLLBACK TO SAVEPOINT rowpost_message");
    await run(tx, "RELEASE SAVEPOINT rowpost_message");
    if (outcome.kind === "away") return new Away(delivery, outcome.error);
    return [thrown, failure].find((each): each is Error => store.isConflict(each));
  }

  function failedAttempt({ countedAttempt, startedMs }: Delivery, error: unknown): Outcome {
    const nowMs = clock.monotonicMs();
    return failed(error, { attempt: countedAttempt, maxAttempts, durationMs: nowMs - (startedMs ?? nowMs) });
  }

  /**
   * Writes a failed attempt outside the user's transaction, after the message failed alone. Returns
   * false when that failed. If the transaction took effect after all, the partition is fenced out
   * and restarts behind it.
   */
  async function giveUp(partition: Partition, delivery: Delivery, error: unknown): Promise<boolean> {
    delivery.outcome = failedAttempt(delivery, error);
    holdUp(settings, partition, delivery);
    const settlement = partition.settlementOf([delivery]);
    try {
      if (await store.settle(settings.owner, settlement, place)) {
        await settled(options, partition, { deliveries: [delivery], settlement });
      } else options.onFencedOut(partition);
      return true;
    } catch (again) {
      logger.warn("could not write what was consumed", { topic, error: again });
      delivery.outcome = undefined;
      return false;
    }
  }

  function begin(partition: Partition): void {
    const isTurn = partition.again.size > 0 || partition.window.length >= (batches?.size ?? 0);
    if (isTurn) gathering.get(partition)?.abort("it is somebody's turn");
    partition.settling ??= workThrough(partition).finally(() => {
      partition.settling = undefined;
      // Arrived between the last look and here.
      const isMore = partition.window.length > 0 || partition.again.size > 0;
      if (isMore && !partition.abort.signal.aborted) begin(partition);
    });
  }

  // Handled in order, so nothing is finished ahead.
  return { begin, look: () => undefined, close: () => rests.close() };
}

function wasHandled({ outcome }: Delivery): boolean {
  return outcome?.kind === "consumed" || outcome?.kind === "failed";
}

/** Unknown errors may pass. */
function mayPass(error: unknown): boolean {
  return !(error instanceof RowpostError) || error.retriable;
}

/** After a failed statement, PostgreSQL refuses everything, including RELEASE. */
function wentOn(failure: unknown): TransactionLostError {
  const said = failure === undefined ? "" : ` (${describeError(failure)})`;
  return new TransactionLostError(
    `a statement failed${said}, and the handler went on. PostgreSQL takes nothing more then: write INSERT … ON CONFLICT DO NOTHING, or put the statement behind a SAVEPOINT of its own and go back to that`,
    { cause: failure },
  );
}

async function run(tx: Executor, text: string): Promise<void> {
  await tx.run({ name: "savepoint", text, params: [] });
}
