/**
 * A relay's report for people elsewhere: brokers away and why, resting topics, its shards. Written
 * at most every 10 s, and at once when a broker goes away or comes back. Nothing depends on it.
 */
import type { Broker } from "../brokers/broker.ts";
import { inAscii } from "../runtime/ascii.ts";
import { describeError } from "../runtime/errors.ts";
import type { EventEmitter } from "../runtime/events.ts";
import { disagree, placeText } from "../runtime/topic-patterns.ts";
import { VERSION } from "../runtime/version.ts";
import type { RelayEvents } from "./events.ts";
import type { InFlightWindow } from "./in-flight.ts";
import type { LeaseKeeper } from "./leases/lease-keeper.ts";
import type { RelaySettings } from "./options.ts";
import type { WakeUp } from "./pacing/wake-up.ts";
import type { Outlet } from "./parking/outlets.ts";
import type { Parking } from "./parking/parking.ts";
import type { LeaseStore, RelayReport } from "./store.ts";

/** Interval without events. */
const EVERY_MS = 10_000;
/** Shortest interval. */
const AT_ONCE_MS = 1_000;
const MOST_NAMES = 20;
const REASON_LENGTH = 200;

export interface SelfReport {
  now(): RelayReport;
  /** Rejects when the database does not answer. */
  tell(): Promise<void>;
}

export interface SelfReportOptions {
  readonly owner: string;
  readonly store: { readonly leases: Pick<LeaseStore, "report" | "reports"> };
  readonly broker: Pick<Broker, "name" | "routes" | "target">;
  readonly settings: Pick<RelaySettings, "clock" | "logger" | "onFailed" | "windowSize">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly window: Pick<InFlightWindow, "size">;
  readonly parking: Pick<Parking, "breaker" | "outlets">;
  readonly events: EventEmitter<RelayEvents>;
  readonly heartbeatDue: Pick<WakeUp, "ring">;
}

export function createSelfReport(options: SelfReportOptions): SelfReport {
  const { broker, events, keeper, settings, window } = options;
  const { breaker, outlets } = options.parking;
  const { clock } = settings;
  let toldMs = Number.NEGATIVE_INFINITY;
  let isChanged = true;
  let isCompared = false;
  const place = {
    sendsTo: shortened(broker.target === undefined ? broker.name : `${broker.name} at ${broker.target}`),
    topics: broker.routes?.topics,
  };
  let lastError: { readonly what: string; readonly atMs: number } | undefined;

  function note(what: string): void {
    lastError = { what: shortened(what), atMs: clock.monotonicMs() };
  }
  function change(): void {
    isChanged = true;
    options.heartbeatDue.ring();
  }
  events.on("brokerAway", ({ broker, reason }) => {
    note(`broker ${broker}: ${reason}`);
    change();
  });
  events.on("brokerBack", change);
  events.on("databaseAway", ({ error }) => note(`database: ${describeError(error)}`));
  events.on("topicPaused", ({ topic, reason }) => note(`topic ${topic}: ${reason}`));
  events.on("failed", ({ message, reason }) => note(`message ${message.id}: ${reason}`));

  function brokerReport({ gate, name }: Outlet): RelayReport["brokers"][number] {
    const { away } = gate;
    if (away === undefined) return { name, awayForMs: undefined, reason: undefined, topics: undefined };
    return {
      name,
      awayForMs: Math.round(clock.monotonicMs() - away.sinceMs),
      reason: shortened(away.reason),
      topics: outlets.topicsOf(name)?.slice(0, MOST_NAMES),
    };
  }

  function now(): RelayReport {
    const resting = breaker.resting();
    const nowMs = clock.monotonicMs();
    return {
      version: VERSION,
      shards: keeper.fence().epochs.flatMap((epoch, shard) => (epoch === undefined ? [] : [shard])),
      inFlight: window.size,
      windowSize: settings.windowSize,
      onFailed: settings.onFailed,
      ...place,
      brokers: outlets.all.slice(0, MOST_NAMES).map(brokerReport),
      restingTopics: resting.slice(0, MOST_NAMES).map((each) => ({ ...each, reason: shortened(each.reason) })),
      moreResting: Math.max(0, resting.length - MOST_NAMES),
      lastError: lastError && { what: lastError.what, agoMs: Math.round(nowMs - lastError.atMs) },
    };
  }

  /** Once, since relays that start later compare too. */
  async function compare(): Promise<void> {
    for (const { alive, label, owner, report } of await options.store.leases.reports()) {
      if (!alive || owner === options.owner || report === undefined || !disagree(report, place)) continue;
      settings.logger.warn(
        "another relay takes messages of the same topics and sends them elsewhere, or does not share the work: give both the same brokers and routes, each its own topics, or each a table of its own",
        { relay: label, sendsTo: placeText(report), here: placeText(place) },
      );
    }
  }

  return {
    now,
    async tell() {
      const sinceMs = clock.monotonicMs() - toldMs;
      if (sinceMs < (isChanged ? AT_ONCE_MS : EVERY_MS)) return;
      // So that a failing statement is not retried at every turn.
      toldMs = clock.monotonicMs();
      isChanged = false;
      await options.store.leases.report({ owner: options.owner, report: inAscii(JSON.stringify(now())) });
      if (isCompared) return;
      isCompared = true;
      await compare();
    },
  };
}

function shortened(text: string): string {
  return text.length <= REASON_LENGTH ? text : `${text.slice(0, REASON_LENGTH - 1)}…`;
}
