/**
 * Puts the parts of a relay together and runs its three loops: the rounds, the heartbeat (a timer of its own on a session of its own, so that
 * neither a long batch nor a waiting statement delays a renewal), and housekeeping.
 */
import { randomUUID } from "node:crypto";
import type { Broker } from "../brokers/broker.ts";
import type { Database, TableLayout } from "../databases/database.ts";
import type { EventEmitter } from "../runtime/events.ts";
import { createHousekeeping } from "./housekeeping.ts";
import { createInFlightWindow, type InFlightWindow } from "./in-flight-window.ts";
import { createLeaseKeeper, type LeaseKeeperOptions } from "./lease-keeper.ts";
import { createOutlets } from "./outlets.ts";
import { createParkedRows } from "./parked-rows.ts";
import { createPollPace } from "./poll-pace.ts";
import { createPublisher } from "./publisher.ts";
import type { RelayEvents } from "./relay-events.ts";
import { createRelayFlow } from "./relay-flow.ts";
import type { RelaySettings } from "./relay-options.ts";
import { createRelayProblems } from "./relay-problems.ts";
import { createRelayReports, type RelayCounts, type RelayReports } from "./relay-reports.ts";
import { createRound } from "./relay-round.ts";
import { createRelayRunner, type RelayRunner } from "./relay-runner.ts";
import type { RelayStoreOptions } from "./relay-store.ts";
import { createScanSize } from "./scan-size.ts";
import { createSendingSweep } from "./sending-sweep.ts";
import { createSettler, type SettlerEvents } from "./settler.ts";
import { createSweep, type Sweep } from "./sweep.ts";
import { createTopicBreaker } from "./topic-breaker.ts";
import { createWakeUp } from "./wake-up.ts";

export interface RelayEngineOptions {
  readonly database: Database;
  readonly broker: Broker;
  readonly layout: TableLayout;
  readonly settings: RelaySettings;
  readonly events: EventEmitter<RelayEvents>;
}

/** The running parts of one relay; see relay.ts for what its methods promise. */
export interface RelayEngine extends RelayRunner {
  readonly owner: string;
  readonly counts: RelayCounts;
  resetBackoff(topic: string): Promise<number>;
}

/** A statement may take this long before its session is given up; well below a lease. */
const LONGEST_STATEMENT_MS = 15_000;

/** Makes the engine; nothing is opened yet. */
export function createRelayEngine(options: RelayEngineOptions): RelayEngine {
  const { database, broker, layout, settings, events } = options;
  const { clock, publishTimeoutMs } = settings;
  const owner = randomUUID();
  const store = database.relayStore({ layout });
  const reports = createRelayReports(settings, events);
  const freed = createWakeUp(clock);
  const sweep = createSweep(clock);
  const outlets = createOutlets({ ...settings, broker });
  const window = createInFlightWindow({
    added: ({ message }) => outlets.entered(message.topic),
    removed({ message }) {
      outlets.left(message.topic);
      if (message.orderingKey !== null) sweep.keyFreed();
      // It may have gone back to pending, which a scan under way has not seen.
      sweep.touched();
      freed.ring();
    },
  });
  const keeper = createLeaseKeeper({
    ...settings,
    leases: store.leases,
    owner,
    window,
    ...leaseEvents(settings, reports, events, sweep),
  });
  const parts = {
    ...{ settings, clock, store, layout, events, reports, window, freed, keeper, sweep, publishTimeoutMs },
    outlets,
    breaker: createTopicBreaker(clock),
    pace: createPollPace(settings.poll, clock),
    publisher: createPublisher({ broker, clock, publishTimeoutMs }),
    scanSize: createScanSize(settings.batchSize),
  };
  const parked = createParkedRows({
    ...parts,
    wake() {
      sweep.touched();
      runner.wake();
    },
  });
  const problems = createRelayProblems({ ...parts, parked });
  const hasClaimToken = layout.columns.lockVersion !== undefined;
  const settler = createSettler({ ...parts, hasClaimToken, events: settlerEvents(reports, window) });
  const flow = createRelayFlow({
    ...parts,
    settler,
    // An error is reported; the messages come due by themselves later.
    onTopicBack: (topic) => void reported(reports, "reset backoff", housekeeping.resetBackoff(topic)),
    onBrokerBack() {
      sweep.restart();
      runner.wake();
    },
  });
  const round = createRound({
    ...parts,
    ...{ problems, parked },
    ...{ publish: flow.publish, giveBack: flow.giveBack },
  });
  const housekeeping = createHousekeeping({
    ...parts,
    sweep: createSendingSweep({ ...parts, housekeeping: store.housekeeping }),
    wake: () => runner.wake(),
  });
  const runner = createRelayRunner({
    ...parts,
    ...{ flow, round, problems, parked, housekeeping },
    ...{ open: () => store.open(storeOptions(settings)), close: () => store.close() },
    ...{ listen: () => database.listen(layout), doorbell: database.doorbell },
  });
  return {
    ...runner,
    owner,
    get counts() {
      return reports.counts;
    },
    resetBackoff: (topic) => housekeeping.resetBackoff(topic),
  };
}

/** Work beside the loops: its failure is told, and that it works again. */
async function reported(reports: RelayReports, part: string, work: Promise<unknown>): Promise<void> {
  try {
    await work;
    reports.databaseBack(part);
  } catch (error) {
    reports.databaseAway(part, error);
  }
}

function storeOptions(settings: RelaySettings): RelayStoreOptions {
  return {
    sendingMark: settings.sendingMark,
    statementTimeoutMs: Math.min(LONGEST_STATEMENT_MS, Math.floor(settings.leaseMs / 2)),
    // Below a quarter of the lease, so that a user's lock on a message row cannot starve a renewal (rule R2).
    lockWaitTimeoutMs: Math.max(1_000, Math.min(3_000, Math.floor(settings.leaseMs / 5))),
  };
}

/** What the relay tells and does when shards come and go. */
function leaseEvents(
  settings: RelaySettings,
  reports: RelayReports,
  events: EventEmitter<RelayEvents>,
  sweep: Sweep,
): Pick<LeaseKeeperOptions, "onAcquired" | "onLost" | "onReleased"> {
  return {
    async onAcquired(shards, recovered) {
      settings.logger.info("acquired shards", { shards: shards.length, recovered });
      reports.recovered(recovered);
      events.emit("shardsAcquired", { shards, recovered });
      // The rows just recovered may lie before the place that the sweep has reached.
      sweep.restart();
      sweep.touched();
      await settings.reach("acquired");
    },
    onLost(shards) {
      settings.logger.warn("lost shards to another relay", { shards });
      settings.metrics.increment("rowpost_lease_lost_total", {}, shards.length);
      events.emit("shardsLost", { shards });
    },
    async onReleased(shards) {
      events.emit("shardsReleased", { shards });
      await settings.reach("released");
    },
  };
}

/** A settled, fenced or lost message leaves the window, and is told about. */
function settlerEvents(reports: RelayReports, window: InFlightWindow): SettlerEvents {
  return {
    onSettled(settlements) {
      reports.databaseBack("settle");
      for (const { entry } of settlements) window.remove(entry.message.id);
      reports.settled(settlements);
    },
    onFenced(settlement, now) {
      reports.databaseBack("settle");
      window.remove(settlement.entry.message.id);
      reports.fenced(settlement, now);
    },
    onLost(settlement) {
      window.remove(settlement.entry.message.id);
      reports.outcomeLost(settlement);
    },
    onDatabaseError: (error) => reports.databaseAway("settle", error),
  };
}
