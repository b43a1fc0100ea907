/**
 * The relay publishes the messages of a local message table, records the outcomes, and does
 * housekeeping. `start` runs it until `stop`; `drain` until nothing more can be sent; `tick` runs
 * one round, so that tests need no sleep. Several relays on one table share the work.
 */
import { onAbort } from "../runtime/abort.ts";
import { RowpostError } from "../runtime/errors.ts";
import { createEventEmitter, type Listener } from "../runtime/events.ts";
import { useBroker } from "./broker-use.ts";
import { createRelayEngine } from "./engine.ts";
import type { RelayEvents } from "./events.ts";
import { type RelayOptions, relaySettings } from "./options.ts";
import type { RelayCounts } from "./reports.ts";
import type { LeftMessages, RelayReport } from "./store.ts";

/** Result of a stop. */
export interface StopReport {
  /** Everything in flight was settled and all leases were given back. */
  readonly drained: boolean;
  /**
   * Messages without a recorded outcome; the next owner publishes them again once the lease ends.
   */
  readonly unsettled: number;
}

/** Result of one tick. */
export interface TickReport extends RelayCounts {
  /** Messages claimed. */
  readonly claimed: number;
  /** Nothing waits that this relay could send now. */
  readonly exhausted: boolean;
}

/** Result of a drain. */
export interface DrainReport extends RelayCounts, StopReport {
  /** Nothing due was left; false: the time ran out or the broker stayed away. */
  readonly complete: boolean;
  /** Messages left before the stop, by what they wait for; undefined: the database was away. */
  readonly left: LeftMessages | undefined;
}

/** Current health of a relay. */
export interface RelayHealth {
  /** It runs, and its last heartbeat reached the database within three intervals. */
  readonly ready: boolean;
  /** Undefined: none yet. */
  readonly heartbeatAgoMs: number | undefined;
}

/** Options of a drain. */
export interface DrainOptions {
  /** Time limit in ms. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Ends it early. */
  readonly signal?: AbortSignal | undefined;
  /** Also waits for messages in backoff, as long as time allows. */
  readonly untilEmpty?: boolean | undefined;
}

/** Publishes the messages of a table; several relays share the work. Made by `createRelay`. */
export interface Relay {
  /**
   * Opens the store, checks the broker, takes leases and runs until {@link Relay.stop}. Rejects,
   * with nothing left running, when the database is away and for errors that waiting cannot fix: a
   * table that differs from the layout, a missing package, credentials or options that the broker
   * refuses. A broker that is away is logged at level error and waited for.
   */
  start(): Promise<void>;
  /**
   * Takes nothing new, finishes messages in flight within `drainTimeoutMs`, gives unstarted rows
   * back uncounted, releases the leases, and closes the broker (see `closeBroker`). Ends within
   * `drainTimeoutMs` plus five seconds, even when database or broker do not answer. Repeated calls
   * return the same result. Ends a running `start` or `drain`.
   */
  stop(): Promise<StopReport>;
  /**
   * Runs one round with its publishes and settles, and housekeeping when due. The first call opens
   * the store, as does the next one after a failure; `stop` closes it.
   */
  tick(): Promise<TickReport>;
  /**
   * Runs until nothing due is left, at most `timeoutMs`, then stops. For cron. Messages in backoff
   * and locked rows stay, reported in `left`.
   */
  drain(options?: DrainOptions): Promise<DrainReport>;
  /**
   * Brings a topic's backed-off messages forward, for instance after an outage. Returns their
   * number.
   */
  resetBackoff(topic: string): Promise<number>;
  /** Calls `listener` for each such event. Returns a function that unsubscribes. */
  on<Name extends keyof RelayEvents>(name: Name, listener: Listener<RelayEvents[Name]>): () => void;
  /** The current report, as written beside the heartbeat: brokers away, resting topics, shards. */
  report(): RelayReport;
  /** Health for a supervisor. A broker that is away does not make the relay unready. */
  health(): RelayHealth;
  /** Totals since the relay was made. */
  readonly counts: RelayCounts;
  /** Random id of this instance: the owner in the lease rows. */
  readonly owner: string;
}

/** How much longer than its drain timeout a stop waits for the database, before closing. */
const CUTOFF_MS = 3_000;

/** Shortest pause of a drain that waits for backoffs. */
const FIRST_LOOK_MS = 50;

/**
 * Makes a relay; opens nothing before `start`, `tick` or `drain`. Throws `ConfigurationError` for
 * impossible options.
 */
export function createRelay(options: RelayOptions): Relay {
  const settings = relaySettings(options);
  const cutoff = new AbortController();
  const events = createEventEmitter<RelayEvents>({ logger: settings.logger });
  const engine = createRelayEngine({
    database: options.database,
    broker: options.broker,
    layout: options.layout ?? options.database.defaultLayout,
    settings,
    events,
    cutoff: cutoff.signal,
  });
  const broker = useBroker(options.broker, settings);
  const stopping = new AbortController();
  let phase: "new" | "ticking" | "running" | "stopped" = "new";

  function enter(next: "ticking" | "running"): void {
    if (phase === "new" || (phase === "ticking" && next === "ticking")) phase = next;
    else throw new RowpostError("RELAY_STATE", `this relay is ${phase}; make another one with createRelay`);
  }

  let opening: Promise<void> | undefined;
  let ending: Promise<StopReport> | undefined;

  /** One stop for all calls: a second caller must not continue while the first still drains. */
  function stop(): Promise<StopReport> {
    ending ??= end();
    return ending;
  }

  async function end(): Promise<StopReport> {
    const before = phase;
    phase = "stopped";
    stopping.abort();
    const cutting = settings.clock.setTimer(() => cutoff.abort(), settings.drainTimeoutMs + CUTOFF_MS);
    // Stopped while starting: leases and sessions of the opening must be given back.
    await opening?.catch(() => undefined);
    try {
      return before === "new" ? { drained: true, unsettled: 0 } : await engine.stop();
    } finally {
      cutting.cancel();
      await broker.end();
    }
  }

  /** Rejects only when both have ended, so that a stop finds neither under way. */
  async function open(): Promise<void> {
    const parts = await Promise.allSettled([engine.open(), broker.check(stopping.signal)]);
    for (const part of parts) if (part.status === "rejected") throw part.reason;
  }

  async function start(): Promise<void> {
    enter("running");
    opening = open();
    try {
      await opening;
    } catch (error) {
      await stop();
      throw error;
    }
    if (ending === undefined) engine.run();
  }

  return {
    start,
    stop,
    async tick() {
      enter("ticking");
      opening ??= open();
      await opening.catch((error: unknown) => {
        // The next tick opens again.
        opening = undefined;
        throw error;
      });
      const before = { ...engine.counts };
      const result = await engine.tick();
      return { ...difference(engine.counts, before), ...result };
    },
    async drain({ timeoutMs = 60_000, signal, untilEmpty = false } = {}) {
      const before = { ...engine.counts };
      // A start that waits for a database may take long.
      const starting = start();
      const stopFollowing = onAbort(signal, () => void stop());
      await starting.finally(stopFollowing);
      const untilMs = settings.clock.monotonicMs() + timeoutMs;
      const ending = AbortSignal.any([stopping.signal, ...(signal === undefined ? [] : [signal])]);
      let complete: boolean;
      let left: LeftMessages | undefined;
      let idlePasses = 0;
      for (;;) {
        const countsBefore = sum(engine.counts);
        complete = await engine.exhausted(untilMs - settings.clock.monotonicMs(), signal);
        left = ending.aborted ? undefined : await engine.left().catch(() => undefined);
        idlePasses = sum(engine.counts) === countsBefore ? idlePasses + 1 : 0;
        // Messages that came due since the last scan are in no backoff. Due messages left after two
        // passes without effect are held back by a rule, or locked.
        const hasComeDue = left !== undefined && left.due > 0 && idlePasses < 2;
        const inMs = hasComeDue ? 0 : left?.nextBackoffInMs;
        if (!untilEmpty || !complete || inMs === undefined) break;
        // No busy loop for a message that is due by now.
        const pauseMs = Math.max(inMs, FIRST_LOOK_MS);
        if (pauseMs >= untilMs - settings.clock.monotonicMs()) break;
        await settings.clock.sleep(pauseMs, ending);
        if (ending.aborted) break;
      }
      const stopped = await stop();
      return { ...difference(engine.counts, before), ...stopped, complete, left };
    },
    resetBackoff: (topic) => engine.resetBackoff(topic),
    report: () => engine.report(),
    health() {
      const heartbeatAgoMs = engine.heartbeatAgoMs();
      const ready = phase === "running" && heartbeatAgoMs !== undefined && heartbeatAgoMs < 3 * settings.heartbeatMs;
      return { ready, heartbeatAgoMs };
    },
    on: (name, listener) => events.on(name, listener),
    get counts() {
      return engine.counts;
    },
    owner: engine.owner,
  };
}

function difference(now: RelayCounts, before: RelayCounts): RelayCounts {
  const names = Object.keys(now) as (keyof RelayCounts)[];
  return Object.fromEntries(names.map((name) => [name, now[name] - before[name]])) as unknown as RelayCounts;
}

function sum(counts: RelayCounts): number {
  return Object.values(counts).reduce((total: number, count: number) => total + count, 0);
}
