/** A member of a group: its leases, its rounds, its end. */
import { setImmediate } from "node:timers/promises";
import type { QueueDatabase } from "../../databases/database.ts";
import { createLeaseKeeper, type LeaseKeeper } from "../../relay/leases/lease-keeper.ts";
import { LOOK_MS } from "../../relay/leases/lock-watch.ts";
import { createPollPace } from "../../relay/pacing/poll-pace.ts";
import { createWakeUp, firstRing } from "../../relay/pacing/wake-up.ts";
import { untilAborted } from "../../runtime/abort.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { ConsumerPlace, ConsumptionStore, Progress, TopicStore } from "../store.ts";
import { createCarefulness, leaseSettings } from "./careful.ts";
import { createFilling, cutBack } from "./filling.ts";
import type { Lanes } from "./lanes.ts";
import { namesOf, tellLong } from "./long-handlers.ts";
import type { ConsumerSettings } from "./options.ts";
import { createParallelWork } from "./parallel-work.ts";
import { createPartition, type Partition } from "./partition.ts";
import { createTransactionalWork } from "./transactional-work.ts";
import type { Work } from "./work.ts";

/** What `queue.consume` gives back. */
export interface Consumer {
  /**
   * Reads nothing more, waits for the handlers that run, writes what they have finished, and gives
   * its partitions to the other members. `drained`: nothing was left.
   */
  stop(): Promise<{ readonly drained: boolean }>;
  /** Partitions that this member holds now. */
  readonly partitions: readonly number[];
  /** Random id of this member: the owner in message_consumption, the instance in the records. */
  readonly owner: string;
}

export interface ConsumerOptions {
  readonly settings: ConsumerSettings;
  readonly store: ConsumptionStore;
  readonly topics: Pick<TopicStore, "months">;
  readonly place: Omit<ConsumerPlace, "instance">;
  readonly database: Pick<QueueDatabase, "doorbell" | "listen">;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
  readonly lanes?: Lanes | undefined;
}

const STOP_STEP_MS = 50;
/** What a stop takes at most beside its time for handlers: a server may answer nothing any more. */
const SIGN_OFF_MS = 2_000;
/** A stop that waits for handlers so long says so. */
const LONG_STOP_MS = 5_000;

/** Joins the group and runs. Rejects, with nothing left running, when the database is away. */
export async function startConsumer(options: ConsumerOptions): Promise<Consumer> {
  const { settings, store } = options;
  const member = createMember(options);
  try {
    await store.join(settings.from);
    await member.heartbeat();
  } catch (error) {
    await store.close();
    throw error;
  }
  member.run();
  return {
    stop: () => member.stop(),
    get partitions() {
      return member.partitions();
    },
    owner: settings.owner,
  };
}

interface Member {
  heartbeat(): Promise<void>;
  run(): void;
  stop(): Promise<{ readonly drained: boolean }>;
  partitions(): readonly number[];
}

function createMember(options: ConsumerOptions): Member {
  const { settings, store, database } = options;
  const { clock, logger, topic, group } = settings;
  const held = new Map<number, Partition>();
  const wakeUp = createWakeUp(clock);
  const freed = createWakeUp(clock);
  const heartbeatDue = createWakeUp(clock);
  const pace = createPollPace(settings.poll, clock);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  const ended: (() => void | Promise<void>)[] = [];
  let lastHeartbeatMs = Number.NEGATIVE_INFINITY;
  /** Partitions of the topic when the group's rows were last made; it may get more. */
  let joined = 0;
  let stopped: Promise<{ readonly drained: boolean }> | undefined;

  const keeper: LeaseKeeper = createLeaseKeeper({
    leases: store.leases,
    owner: settings.owner,
    settings: leaseSettings(settings, () => careful.leaseMs),
    window: { countOf: (partition) => countOf(held.get(partition)) },
    onAcquired: async (partitions, _recovered, silent) => {
      careful.acquired(silent);
      for (const progress of await store.progress(partitions)) hold(progress);
      wakeUp.ring();
    },
    onLost: (partitions) => {
      logger.warn("partitions were lost to another member", { topic, group, partitions });
      for (const partition of partitions) drop(partition);
    },
    onReleased: (partitions) => {
      for (const partition of partitions) drop(partition);
    },
    onSessionLost: () => heartbeatDue.ring(),
    onNoLock: () =>
      logger.warn("no lock stands for this member: if it dies, its partitions wait for its lease", { topic, group }),
  });

  const place = { ...options.place, instance: settings.owner };
  const careful = createCarefulness({
    ...{ settings, store, place },
    heartbeat: () => heartbeat(),
    onFencedOut: (partition) => workOptions.onFencedOut(partition),
  });
  const workOptions = {
    ...{ settings, store, place, transaction: options.transaction, lanes: options.lanes },
    onFencedOut: (partition: Partition) => {
      // It was dropped before, and another one may stand for it by now.
      if (partition.abort.signal.aborted) return;
      drop(partition.partition);
      heartbeatDue.ring();
    },
    onSettled: () => freed.ring(),
  };
  const work: Work = settings.transactional ? createTransactionalWork(workOptions) : createParallelWork(workOptions);

  const filling = createFilling({
    ...{ settings, store, work, held, stopping: stopping.signal },
    mark: (partition, delivery) => careful.mark(partition, delivery),
  });

  function hold(progress: Progress): void {
    const months = (): Promise<readonly number[]> => options.topics.months(topic);
    const isSilent = careful.isSilent(progress.partition);
    held.set(progress.partition, createPartition({ progress, store, months, settings, isSilent }));
  }

  function drop(partition: number): void {
    const gone = held.get(partition);
    if (gone === undefined) return;
    gone.abort.abort();
    held.delete(partition);
    careful.dropped(gone);
    // A settle that is under way may take effect yet.
    void Promise.resolve(gone.settling).finally(() => {
      for (const delivery of [...gone.window, ...gone.again.values()]) delivery.over?.(false);
    });
  }

  async function heartbeat(): Promise<void> {
    lastHeartbeatMs = clock.monotonicMs();
    careful.beats(held.values());
    try {
      await keeper.heartbeat();
      if (held.size === 0) await joinAgain();
      // A partition whose progress could not be read when it was taken, or that was fenced out.
      const missing = keeper.usable(0).filter((partition) => !held.has(partition));
      for (const progress of missing.length === 0 ? [] : await store.progress(missing)) {
        if (progress.epoch === keeper.epochOf(progress.partition)) hold(progress);
      }
    } catch (error) {
      lastHeartbeatMs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  /** Without partitions nobody reads the counters, which would tell of new ones. */
  async function joinAgain(): Promise<void> {
    const { lastIds } = await store.counters();
    const rows = await store.progress([...lastIds.keys()]);
    if (rows.length < lastIds.size) await store.join(settings.from);
  }

  async function loop(name: string, step: () => Promise<void>): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        await step();
        failures = 0;
        // SQLite answers within the call: steps that follow each other as microtasks would let no
        // timer run, the heartbeat's included.
        await setImmediate();
      } catch (error) {
        failures += 1;
        if (failures === 1) logger.warn("the database is away", { topic, group, loop: name, error });
        await clock.sleep(retryPauseMs(failures), stopping.signal);
      }
    }
  }

  async function heartbeatStep(): Promise<void> {
    const rung = heartbeatDue.count;
    const dueMs = lastHeartbeatMs + settings.heartbeatMs - clock.monotonicMs();
    if (dueMs > 0 && keeper.hasSession && !(await keeper.look())) {
      await heartbeatDue.wait({ sinceCount: rung, ms: Math.min(dueMs, LOOK_MS), signal: stopping.signal });
      if (heartbeatDue.count === rung) return;
    }
    await heartbeat();
  }

  async function roundStep(): Promise<void> {
    const rung = wakeUp.count;
    const left = freed.count;
    const usable = keeper.usable(1).flatMap((partition) => held.get(partition) ?? []);
    const found = usable.length > 0 && (await fillAll(usable));
    if (found) {
      pace.found();
      return;
    }
    const ms = pace.nextWaitMs();
    await firstRing({ ms, signal: stopping.signal }, [wakeUp, rung], [freed, left]);
  }

  async function fillAll(partitions: readonly Partition[]): Promise<boolean> {
    const { lastIds, paused } = await store.counters();
    if (lastIds.size > joined) {
      await store.join(settings.from);
      heartbeatDue.ring();
    }
    joined = lastIds.size;
    if (paused) {
      for (const partition of partitions) cutBack(partition);
      return false;
    }
    let found = false;
    for (const partition of partitions) {
      work.look(partition);
      const lastId = lastIds.get(partition.partition);
      if (lastId !== undefined && (await filling.fill(partition, lastId))) found = true;
      if (await filling.fillAgain(partition)) found = true;
    }
    return found;
  }

  async function drain(): Promise<boolean> {
    const beganMs = clock.monotonicMs();
    const deadlineMs = beganMs + settings.drainTimeoutMs;
    let isTold = false;
    const never = new AbortController().signal;
    for (;;) {
      const left = freed.count;
      // What rests can be cut as soon as what has ended behind it is recorded.
      for (const partition of held.values()) cutBack(partition);
      if (lastHeartbeatMs + settings.heartbeatMs < clock.monotonicMs()) await heartbeat().catch(() => undefined);
      const empty = await keeper.releaseSettled().catch(() => false);
      if (empty) return true;
      if (clock.monotonicMs() >= deadlineMs) return false;
      if (!isTold && clock.monotonicMs() - beganMs > LONG_STOP_MS) {
        isTold = true;
        const handled = namesOf(held.values());
        logger.warn("a stop waits for handlers; one that awaits the stop waits for itself", { topic, group, handled });
      }
      await freed.wait({ sinceCount: left, ms: STOP_STEP_MS, signal: never });
    }
  }

  async function end(): Promise<{ readonly drained: boolean }> {
    stopping.abort();
    await Promise.all(loops);
    for (const close of ended) await close();
    const drained = await drain();
    for (const partition of [...held.keys()]) drop(partition);
    work.close();
    keeper.forget();
    await keeper.leave().catch((error: unknown) => logger.warn("could not sign off", { topic, group, error }));
    await store.close();
    return { drained };
  }

  /** Statements without an answer have a time of their own, and end what is left behind here. */
  function inTime(ending: Promise<{ readonly drained: boolean }>): Promise<{ readonly drained: boolean }> {
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(() => {
        logger.warn("the database does not answer; this member stops without it", { topic, group });
        for (const partition of [...held.keys()]) drop(partition);
        resolve({ drained: false });
      }, settings.drainTimeoutMs + SIGN_OFF_MS);
      ending.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  return {
    heartbeat,
    partitions: () => [...held.keys()].sort((left, right) => left - right),
    run() {
      ended.push(database.doorbell.subscribe(() => wakeUp.ring()));
      loops.push(
        loop("rounds", roundStep),
        loop("heartbeat", heartbeatStep),
        loop("watch", async () => {
          const sinceMs = clock.monotonicMs();
          await clock.sleep(LOOK_MS, stopping.signal);
          tellLong(settings, held.values(), clock.monotonicMs() - sinceMs - LOOK_MS);
        }),
        loop("listen", async () => {
          const listening = await database.listen();
          if (listening !== undefined) ended.push(() => listening.close());
          await untilAborted(stopping.signal);
        }),
      );
    },
    stop() {
      stopped ??= inTime(end());
      return stopped;
    },
  };
}

function countOf(partition: Partition | undefined): number {
  return partition === undefined ? 0 : partition.window.length + partition.again.size;
}
