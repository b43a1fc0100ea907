import { setImmediate } from "node:timers/promises";
import { onAbort, untilAborted } from "../runtime/abort.ts";
import { LONGEST_RETRY_MS, retryPauseMs } from "../runtime/backoff.ts";
import type { RoundResult } from "./claiming/round.ts";
import type { Housekeeping } from "./housekeeping/housekeeping.ts";
import type { InFlightWindow } from "./in-flight.ts";
import type { Duty } from "./leases/duty.ts";
import type { LeaseKeeper } from "./leases/lease-keeper.ts";
import { LOOK_MS } from "./leases/lock-watch.ts";
import type { RelaySettings } from "./options.ts";
import { createPollPace } from "./pacing/poll-pace.ts";
import { firstRing, type WakeUp } from "./pacing/wake-up.ts";
import type { Parking } from "./parking/parking.ts";
import type { RelayFlow } from "./publishing/flow.ts";
import type { Publisher } from "./publishing/publisher.ts";
import type { RelayReports } from "./reports.ts";
import type { SelfReport } from "./self-report.ts";
import type { RelaySource } from "./source.ts";

export interface RelayRunnerOptions {
  readonly settings: RelaySettings;
  readonly reports: RelayReports;
  readonly keeper: LeaseKeeper;
  readonly duty: Duty;
  readonly window: InFlightWindow;
  /** Rings when a message left the window. */
  readonly freed: WakeUp;
  readonly wakeUp: WakeUp;
  readonly heartbeatDue: WakeUp;
  readonly selfReport: Pick<SelfReport, "tell">;
  readonly parking: Pick<Parking, "room" | "setAside" | "followers">;
  readonly flow: RelayFlow;
  readonly publisher: Publisher;
  readonly round: () => Promise<RoundResult>;
  readonly housekeeping: Housekeeping;
  readonly source: Omit<RelaySource, "abilities">;
}

export interface RelayRunner {
  /** Takes the first leases. Rejects when the table differs from the layout. */
  open(): Promise<void>;
  run(): void;
  tick(): Promise<{ readonly claimed: number; readonly exhausted: boolean }>;
  /** True after the first round that left nothing to send; false on timeout, abort or stop. */
  exhausted(timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  stop(): Promise<{ readonly drained: boolean; readonly unsettled: number }>;
  wake(): void;
  /** Undefined: none yet. */
  heartbeatAgoMs(): number | undefined;
}

interface Step {
  readonly waitMs: number;
  readonly asked: boolean;
}

/** The database may be away. */
const STOP_STEP_MS = 100;

export function createRelayRunner(options: RelayRunnerOptions): RelayRunner {
  const { settings, reports, keeper, duty, window, freed, wakeUp, parking, flow, housekeeping, source } = options;
  const { clock } = settings;
  const pace = createPollPace(settings.poll, clock);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  const ended: (() => void | Promise<void>)[] = [];
  const exhaustedWaiters = new Set<() => void>();
  let lastHeartbeatMs = Number.NEGATIVE_INFINITY;
  /** Begin of the last answered heartbeat. */
  let beatenMs: number | undefined;
  let opened = false;

  async function heartbeat(): Promise<void> {
    const startedMs = clock.monotonicMs();
    lastHeartbeatMs = startedMs;
    try {
      await settings.reach("heartbeat");
      await keeper.heartbeat();
      beatenMs = startedMs;
    } catch (error) {
      // The caller paces the retries.
      lastHeartbeatMs = Number.NEGATIVE_INFINITY;
      await duty.heartbeatFailed(error);
      throw error;
    }
    settings.metrics.gauge("rowpost_lease_shards", {}, keeper.heldCount);
  }

  /**
   * Repeats `step` until the relay stops. `step` returns the pause, and whether the database was
   * asked and may be reported as back. A failing step is reported and retried.
   */
  async function loop(name: string, step: () => Promise<Step>): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        const { waitMs, asked } = await step();
        if (asked) {
          failures = 0;
          reports.databaseBack(name);
        }
        if (waitMs > 0) await clock.sleep(waitMs, stopping.signal);
        // SQLite answers within the call: a chain of microtasks would keep timers from running,
        // including the heartbeat's.
        else await setImmediate();
      } catch (error) {
        failures += 1;
        reports.databaseAway(name, error);
        await clock.sleep(retryPauseMs(failures), stopping.signal);
      }
    }
  }

  async function heartbeatStep(): Promise<Step> {
    const rung = options.heartbeatDue.count;
    if (!duty.isOn) {
      await options.heartbeatDue.wait({ sinceCount: rung, ms: LONGEST_RETRY_MS, signal: stopping.signal });
      return { waitMs: 0, asked: false };
    }
    const dueMs = lastHeartbeatMs + settings.heartbeatMs - clock.monotonicMs();
    if (dueMs > 0 && keeper.hasSession && !(await keeper.look())) {
      await options.selfReport.tell();
      const ms = Math.min(dueMs, LOOK_MS);
      await options.heartbeatDue.wait({ sinceCount: rung, ms, signal: stopping.signal });
      return { waitMs: 0, asked: false };
    }
    const before = keeper.heldCount;
    const couldPublish = keeper.hasSession;
    await heartbeat();
    if (keeper.heldCount > before || !couldPublish) wakeUp.ring();
    await duty.heartbeatWorked();
    return { waitMs: 0, asked: true };
  }

  async function lookStep(): Promise<Step> {
    const isBack = await duty.look();
    if (isBack) {
      lastHeartbeatMs = Number.NEGATIVE_INFINITY;
      options.heartbeatDue.ring();
    }
    return { waitMs: isBack ? 0 : LONGEST_RETRY_MS, asked: true };
  }

  async function roundStep(): Promise<Step> {
    if (!duty.isOn) return await lookStep();
    const rung = wakeUp.count;
    const left = freed.count;
    const { returned } = parking.followers;
    const result = await options.round();
    if (result.claimed > 0) pace.found();
    // Continues with the next rows, but not at full speed.
    const { asked } = result;
    if (result.next === "again") return { waitMs: result.claimed > 0 ? 0 : settings.poll.minMs, asked };
    if (result.next === "full") {
      // Waits for messages under way, or for new ones of other topics.
      await firstRing({ ms: idleWaitMs(), signal: stopping.signal }, [freed, left], [wakeUp, rung]);
      return { waitMs: 0, asked };
    }
    if (exhaustedWaiters.size > 0 && result.exhausted && window.size === 0) {
      if (await hasFollowers(returned)) return { waitMs: settings.poll.maxMs, asked };
      for (const resolve of exhaustedWaiters) resolve();
    }
    await wakeUp.wait({ sinceCount: rung, ms: idleWaitMs(), signal: stopping.signal });
    return { waitMs: 0, asked };
  }

  /** Followers of gone heads came back since `before`, or will, or are locked. */
  async function hasFollowers(before: number): Promise<boolean> {
    await parking.followers.release(true);
    return parking.followers.returned !== before || parking.followers.isHeld;
  }

  function idleWaitMs(): number {
    return parking.room.waitMs(() => pace.nextWaitMs());
  }

  async function settleEverything(deadlineMs: number): Promise<boolean> {
    flow.refuse();
    const never = new AbortController().signal;
    let aborted = false;
    for (;;) {
      const left = freed.count;
      const empty = await keeper.releaseSettled().catch((error: unknown) => {
        reports.databaseAway("release", error);
        return false;
      });
      if (empty && window.size === 0) return true;
      const leftMs = deadlineMs - clock.monotonicMs();
      // The last quarter is for settling what had to be cut off.
      if (!aborted && leftMs < settings.drainTimeoutMs / 4) {
        options.publisher.abort();
        aborted = true;
      }
      if (leftMs <= 0) return false;
      await freed.wait({ sinceCount: left, ms: Math.min(leftMs, STOP_STEP_MS), signal: never });
    }
  }

  return {
    wake: wakeUp.ring,
    heartbeatAgoMs: () => (beatenMs === undefined ? undefined : Math.round(clock.monotonicMs() - beatenMs)),
    async open() {
      await source.open();
      opened = true;
      await heartbeat();
    },
    run() {
      ended.push(source.doorbell.subscribe(wakeUp.ring));
      loops.push(
        loop("relay", roundStep),
        loop("heartbeat", heartbeatStep),
        loop("housekeeping", async () => {
          const asked = await housekeeping.turn();
          return { waitMs: settings.housekeepingMs, asked };
        }),
        loop("listen", async () => {
          const listening = await source.listen();
          if (listening !== undefined) ended.push(() => listening.close());
          reports.databaseBack("listen");
          await untilAborted(stopping.signal);
          return { waitMs: 0, asked: false };
        }),
      );
    },
    async tick() {
      const isDue = clock.monotonicMs() - lastHeartbeatMs >= settings.heartbeatMs;
      if (isDue || keeper.heldCount === 0 || !keeper.hasSession) await heartbeat();
      const { returned } = parking.followers;
      const result = await options.round();
      await parking.setAside.idle();
      await flow.idle();
      // Settled heads bring their followers back.
      await parking.followers.idle();
      await housekeeping.turn();
      await options.selfReport.tell();
      return { claimed: result.claimed, exhausted: result.exhausted && !(await hasFollowers(returned)) };
    },
    async exhausted(timeoutMs, signal) {
      let done = false;
      const waiting = new AbortController();
      const end = (): void => waiting.abort();
      const finish = (): void => {
        done = true;
        end();
      };
      exhaustedWaiters.add(finish);
      const following = [onAbort(signal, end), onAbort(stopping.signal, end)];
      await clock.sleep(timeoutMs, waiting.signal);
      for (const stopFollowing of following) stopFollowing();
      exhaustedWaiters.delete(finish);
      return done;
    },
    async stop() {
      const deadlineMs = clock.monotonicMs() + settings.drainTimeoutMs;
      stopping.abort();
      await Promise.all(loops);
      for (const end of ended) await end();
      await parking.setAside.idle();
      await parking.followers.idle();
      const drained = opened ? await settleEverything(deadlineMs) : true;
      await parking.followers.idle();
      const unsettled = window.size;
      // Gives up unwritten outcomes, instead of retrying on closed sessions.
      keeper.forget();
      if (opened) {
        await keeper.leave().catch((error: unknown) => settings.logger.warn("could not sign off", { error }));
      }
      await source.close();
      return { drained, unsettled };
    },
  };
}
