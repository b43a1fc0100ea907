/**
 * The relay: publishes what waits in a local message table, records the outcome, and keeps house.
 * `start` runs it until `stop`; `drain` runs it until nothing more can be sent; `tick` runs one
 * round, so that tests need no sleep. Several relays on one table share the work.
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

/** How a stop ended. */
export interface StopReport {
  /** Everything in flight was settled and all leases were given back. */
  readonly drained: boolean;
  /**
   * Messages whose outcome was not recorded: published again by the next owner once the lease ends.
   */
  readonly unsettled: number;
}

/** What one tick did. */
export interface TickReport extends RelayCounts {
  /** Messages that were claimed. */
  readonly claimed: number;
  /** Nothing is waiting that could be sent now by this relay. */
  readonly exhausted: boolean;
}

/** How a drain ended. */
export interface DrainReport extends RelayCounts, StopReport {
  /** Nothing due was left when it ended; false: the time was over, or the broker stayed away. */
  readonly complete: boolean;
  /** What was left before it stopped, by what it waits for; undefined: the database was away. */
  readonly left: LeftMessages | undefined;
}

/** How a relay is, as of now. */
export interface RelayHealth {
  /** It runs, and its last heartbeat reached the database within three of their intervals. */
  readonly ready: boolean;
  /** Undefined: none has yet. */
  readonly heartbeatAgoMs: number | undefined;
}

/** Options of a drain. */
export interface DrainOptions {
  /** Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Ends it before. */
  readonly signal?: AbortSignal | undefined;
  /** Wait for messages that wait for their next attempt, too, as long as the time allows. */
  readonly untilEmpty?: boolean | undefined;
}

/** Publishes what waits in the table; several share the work. Made by `createRelay`. */
export interface Relay {
  /**
   * Opens the store, asks the broker, takes leases and runs until {@link Relay.stop}. Rejects, with
   * nothing left running, for what no waiting mends: a table that is not as the layout says, a
   * package that is missing, credentials or options that the broker refuses; and when the database
   * is away. A broker that is away is waited for, and said to be so at level error.
   */
  start(): Promise<void>;
  /**
   * Takes nothing new, finishes what is in flight within `drainTimeoutMs`, gives unstarted rows
   * back uncounted, releases the leases, and closes the broker (see `closeBroker`). It ends within
   * `drainTimeoutMs` and five seconds, even when the database or the broker does not answer. Called
   * again, also while it runs, it answers the same. It ends a `start` or `drain` that is under way.
   */
  stop(): Promise<StopReport>;
  /**
   * One round, its publishes and settles included, with housekeeping when due. Opens the store at
   * the first call, and again after one that could not; `stop` closes it.
   */
  tick(): Promise<TickReport>;
  /**
   * Runs until nothing due is left, at most `timeoutMs`, and stops. For cron. What waits for its
   * next attempt, and what somebody holds, is left, and told in `left`.
   */
  drain(options?: DrainOptions): Promise<DrainReport>;
  /**
   * Brings the backed-off messages of a topic forward, for instance after an outage. Returns how
   * many.
   */
  resetBackoff(topic: string): Promise<number>;
  /** Calls `listener` at each such event. Returns the function that ends it. */
  on<Name extends keyof RelayEvents>(name: Name, listener: Listener<RelayEvents[Name]>): () => void;
  /** What it writes beside its heartbeat, as of now: brokers away, resting topics, shards. */
  report(): RelayReport;
  /** Whether it does its work, for a supervisor. A broker that is away does not make it unready. */
  health(): RelayHealth;
  /** Totals since the relay was made. */
  readonly counts: RelayCounts;
  /** Random id of this instance: the owner in the lease rows. */
  readonly owner: string;
}

/** How much longer than its drain timeout a stop waits for the database. Closing comes on top. */
const CUTOFF_MS = 3_000;

/** A drain that waits for attempts looks no sooner than this. */
const FIRST_LOOK_MS = 50;

/**
 * Makes a relay; nothing is opened before `start`, `tick` or `drain`. Throws `ConfigurationError`
 * for options that cannot work.
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

  /**
   * One stop, however often it is asked for: whoever asks second must not go on while the first
   * still drains.
   */
  function stop(): Promise<StopReport> {
    ending ??= end();
    return ending;
  }

  async function end(): Promise<StopReport> {
    const before = phase;
    phase = "stopped";
    stopping.abort();
    const cutting = settings.clock.setTimer(() => cutoff.abort(), settings.drainTimeoutMs + CUTOFF_MS);
    // Stopped while it starts: what the opening takes, leases and sessions, has to be given back.
    await opening?.catch(() => undefined);
    try {
      return before === "new" ? { drained: true, unsettled: 0 } : await engine.stop();
    } finally {
      cutting.cancel();
      await broker.end();
    }
  }

  /** Rejects only when both have come to their end, so that a stop finds neither under way. */
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
        // What has come due since the last scan is in no backoff any more. What is due after two
        // passes that did nothing is held back by a rule, or locked.
        const hasComeDue = left !== undefined && left.due > 0 && idlePasses < 2;
        const inMs = hasComeDue ? 0 : left?.nextBackoffInMs;
        if (!untilEmpty || !complete || inMs === undefined) break;
        // Never in a busy loop for one that is due by now.
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
