/** A member of a group: its leases, its rounds, its end. */
import { setImmediate } from "node:timers/promises";
import { createLeaseKeeper, type LeaseKeeper } from "../../relay/leases/lease-keeper.ts";
import { LOOK_MS } from "../../relay/leases/lock-watch.ts";
import { createWakeUp, firstRing } from "../../relay/pacing/wake-up.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import type { HandlingReports } from "../../runtime/handling-reports.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { ConsumerPlace, ConsumptionStore, Progress, TopicStore } from "../store.ts";
import { createCarefulness, leaseSettings } from "./careful.ts";
import { createFilling, cutBack } from "./filling.ts";
import type { Lanes } from "./lanes.ts";
import { namesOf } from "./long-handlers.ts";
import { tellUnderWay } from "./observed.ts";
import type { ConsumerSettings } from "./options.ts";
import { createParallelWork } from "./parallel-work.ts";
import { createPartition, dueIn, type Partition } from "./partition.ts";
import { createTransactionalWork } from "./transactional-work.ts";
import type { Watch } from "./watch.ts";
import type { Work } from "./work.ts";

/** A running member of a group, as returned by `queue.consume`. */
export interface Consumer {
  /**
   * Stops reading, waits for running handlers, writes their results, and releases the partitions to
   * the other members. `drained` is true when nothing was left.
   */
  stop(): Promise<{ readonly drained: boolean }>;
  /** Partitions that this member holds. */
  readonly partitions: readonly number[];
  /**
   * Id of this member: the owner in message_consumption, the instance in records. Consists of host,
   * process id, the label if set, and a random suffix.
   */
  readonly owner: string;
}

export interface ConsumerOptions {
  readonly settings: ConsumerSettings;
  readonly store: ConsumptionStore;
  readonly reports: HandlingReports;
  readonly topics: Pick<TopicStore, "months">;
  readonly place: Omit<ConsumerPlace, "instance">;
  /** Shared by all consumers of the queue. */
  readonly watch: Watch;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
  readonly lanes?: Lanes | undefined;
}

const STOP_STEP_MS = 50;
/** Longest rest while messages are under way. */
const BUSY_MS = 100;
/** Longest idle rest. All members of a process end it together. */
const IDLE_MS = 5_000;
/** Most time of a stop beyond its time for handlers: the server may not answer. */
const SIGN_OFF_MS = 2_000;
const LONG_STOP_MS = 5_000;

/**
 * Rejects when the database is unavailable; nothing is left running then, and partitions are
 * released if the database still answers.
 */
export async function startConsumer(options: ConsumerOptions): Promise<Consumer> {
  const { settings, store } = options;
  const member = createMember(options);
  try {
    await store.join(settings.from);
    await member.heartbeat();
  } catch (error) {
    await member.leave();
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
  leave(): Promise<void>;
  stop(): Promise<{ readonly drained: boolean }>;
  partitions(): readonly number[];
}

function createMember(options: ConsumerOptions): Member {
  const { settings, store, reports } = options;
  const { clock, logger, topic, group } = settings;
  const held = new Map<number, Partition>();
  const wakeUp = createWakeUp(clock);
  const freed = createWakeUp(clock);
  const heartbeatDue = createWakeUp(clock);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  const seat = options.watch.join({
    store,
    settings,
    onDue,
    onNews: () => wakeUp.ring(),
    onTick: (lateMs) => tellUnderWay(reports, settings, held, lateMs),
  });
  let lastHeartbeatMs = Number.NEGATIVE_INFINITY;
  /** Partitions of the topic when the group's rows were last created. */
  let joined = 0;
  let stopped: Promise<{ readonly drained: boolean }> | undefined;

  const keeper: LeaseKeeper = createLeaseKeeper({
    leases: store.leases,
    owner: settings.owner,
    settings: leaseSettings(settings, () => careful.leaseMs),
    window: { countOf: (partition) => countOf(held.get(partition)) },
    onAcquired,
    onLost: (partitions) => {
      logger.warn("partitions were lost to another member, or to a rewind", { topic, group, partitions });
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
    settings,
    store,
    place,
    heartbeat: () => heartbeat(),
    onFencedOut: (partition) => workOptions.onFencedOut(partition),
  });
  const workOptions = {
    settings,
    store,
    place,
    reports,
    transaction: options.transaction,
    lanes: options.lanes,
    onFencedOut: (partition: Partition) => {
      // A newer object may stand for it by now.
      if (partition.abort.signal.aborted) return;
      drop(partition.partition);
      heartbeatDue.ring();
    },
    onSettled: () => freed.ring(),
  };
  const work: Work = settings.transactional ? createTransactionalWork(workOptions) : createParallelWork(workOptions);

  const filling = createFilling({
    settings,
    store,
    work,
    held,
    stopping: stopping.signal,
    mark: (partition, delivery) => careful.mark(partition, delivery),
  });

  function hold(progress: Progress): void {
    const months = (): Promise<readonly number[]> => options.topics.months(topic);
    const isSilent = careful.isSilent(progress.partition);
    held.set(progress.partition, createPartition({ progress, store, months, settings, isSilent }));
    // Its last owner may have recorded anything appended until now.
    seat.forget();
  }

  function drop(partition: number): void {
    const gone = held.get(partition);
    if (gone === undefined) return;
    gone.abort.abort();
    held.delete(partition);
    careful.dropped(gone);
    // A settle under way may still take effect.
    void Promise.resolve(gone.settling).finally(() => {
      for (const delivery of [...gone.window, ...gone.again.values()]) delivery.over?.(false);
    });
  }

  async function onAcquired(taken: readonly number[], _recovered: number, silent: readonly number[]): Promise<void> {
    careful.acquired(silent);
    for (const progress of await store.progress(taken)) hold(progress);
    wakeUp.ring();
  }

  function onDue(firstDue: ReadonlyMap<number, number>): void {
    for (const [partition, ms] of firstDue) {
      const own = held.get(partition);
      if (own !== undefined) dueIn(own, ms, clock);
    }
    if (firstDue.size > 0) wakeUp.ring();
  }

  async function heartbeat(): Promise<void> {
    lastHeartbeatMs = clock.monotonicMs();
    careful.beats(held.values());
    const before = keeper.usable(1).length;
    try {
      await keeper.heartbeat();
      if (held.size === 0 && !stopping.signal.aborted) await joinAgain();
      // Their progress was unreadable, or they were fenced out.
      const missing = keeper.usable(0).filter((partition) => !held.has(partition));
      for (const progress of missing.length === 0 ? [] : await store.progress(missing)) {
        if (progress.epoch === keeper.epochOf(progress.partition)) hold(progress);
      }
      if (missing.length > 0 || keeper.usable(1).length !== before) wakeUp.ring();
    } catch (error) {
      lastHeartbeatMs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  /** Without partitions a member reads no counters, which would show new ones. */
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
        // SQLite answers within the call: a chain of microtasks would block all timers.
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
    const nowMs = clock.monotonicMs();
    // Members of a process heartbeat together.
    const dueMs = (Math.floor(lastHeartbeatMs / settings.heartbeatMs) + 1) * settings.heartbeatMs - nowMs;
    if (dueMs > 0 && keeper.hasSession && !(await keeper.look())) {
      const ms = keeper.hasOthers ? Math.min(dueMs, LOOK_MS - (nowMs % LOOK_MS)) : dueMs;
      await heartbeatDue.wait({ sinceCount: rung, ms, signal: stopping.signal });
      if (heartbeatDue.count === rung) return;
    }
    await heartbeat();
  }

  async function roundStep(): Promise<void> {
    const rung = wakeUp.count;
    const left = freed.count;
    const usable = keeper.usable(1).flatMap((partition) => held.get(partition) ?? []);
    const found = usable.length > 0 && (await fillAll(usable));
    if (found) return seat.found();
    // Without room it waits for messages under way, not for news.
    const wantsNews = usable.length === 0 || usable.some((partition) => filling.hasRoom(partition));
    if (wantsNews && seat.wantsNewer()) return;
    seat.rest(wantsNews);
    await firstRing({ ms: restMs(usable), signal: stopping.signal }, [wakeUp, rung], [freed, left]);
    seat.rest(false);
  }

  /** Time until something falls due without news. */
  function restMs(partitions: readonly Partition[]): number {
    const dueMs = Math.min(...partitions.map(({ dueAtMs }) => dueAtMs)) - clock.monotonicMs();
    // Due redeliveries not taken in wait for messages under way.
    const idleMs = IDLE_MS - (clock.monotonicMs() % IDLE_MS);
    return Math.min(isIdle(partitions) ? idleMs : BUSY_MS, dueMs > 0 ? dueMs : BUSY_MS);
  }

  async function fillAll(partitions: readonly Partition[]): Promise<boolean> {
    const { lastIds, paused } = await seat.counters();
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
      // Resting messages are cut once the finished ones behind them are recorded.
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
    await seat.leave();
    const drained = await drain();
    for (const partition of [...held.keys()]) drop(partition);
    work.close();
    reports.oldest(topic, 0);
    keeper.forget();
    await keeper.leave().catch((error: unknown) => logger.warn("could not sign off", { topic, group, error }));
    await store.close();
    return { drained };
  }

  async function leave(): Promise<void> {
    await seat.leave();
    if (keeper.heldCount > 0) await keeper.giveUp().catch(() => undefined);
    for (const partition of [...held.keys()]) drop(partition);
    await store.close();
  }

  /** Unanswered statements have their own timeout. */
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
    leave,
    partitions: () => [...held.keys()].sort((left, right) => left - right),
    run() {
      loops.push(loop("rounds", roundStep), loop("heartbeat", heartbeatStep));
    },
    stop() {
      stopped ??= inTime(end());
      return stopped;
    },
  };
}

function isIdle(partitions: readonly Partition[]): boolean {
  return partitions.every((partition) => countOf(partition) === 0);
}

function countOf(partition: Partition | undefined): number {
  return partition === undefined ? 0 : partition.window.length + partition.again.size;
}
