/** Assembles a relay, each part before those that use it. */
import { randomUUID } from "node:crypto";
import type { Broker } from "../brokers/broker.ts";
import type { Database, TableLayout } from "../databases/database.ts";
import type { EventEmitter } from "../runtime/events.ts";
import { createClaim } from "./claiming/claim.ts";
import { createRefusals } from "./claiming/refusals.ts";
import { createRound } from "./claiming/round.ts";
import { createScanPlan } from "./claiming/scan-plan.ts";
import { createScans } from "./claiming/scans.ts";
import type { RelayEvents } from "./events.ts";
import { createHousekeeping } from "./housekeeping/housekeeping.ts";
import { createOldTransactions } from "./housekeeping/old-transactions.ts";
import { createSendingSweep } from "./housekeeping/sending-sweep.ts";
import { createInFlightWindow, type InFlight, type InFlightWindow } from "./in-flight.ts";
import { createDuty } from "./leases/duty.ts";
import { createLeaseKeeper, type LeaseKeeperOptions } from "./leases/lease-keeper.ts";
import type { RelaySettings } from "./options.ts";
import { createWakeUp } from "./pacing/wake-up.ts";
import type { Followers } from "./parking/followers.ts";
import { createParking } from "./parking/parking.ts";
import { createRelayFlow } from "./publishing/flow.ts";
import { createPublisher } from "./publishing/publisher.ts";
import { createSameTransaction } from "./publishing/same-transaction.ts";
import { createSettler, type SettlerEvents } from "./publishing/settler.ts";
import { createRelayReports, type RelayCounts, type RelayReports } from "./reports.ts";
import { createRelayRunner, type RelayRunner } from "./runner.ts";
import { createSelfReport } from "./self-report.ts";
import { createSource } from "./source.ts";
import type { LeftMessages, RelayReport } from "./store.ts";

export interface RelayEngineOptions {
  readonly database: Database;
  readonly broker: Broker;
  readonly layout: TableLayout;
  readonly settings: RelaySettings;
  readonly events: EventEmitter<RelayEvents>;
  /** Cuts every connection to the database at the time limit of a stop. */
  readonly cutoff: AbortSignal;
}

/** relay.ts documents its methods. */
export interface RelayEngine extends RelayRunner {
  readonly owner: string;
  readonly counts: RelayCounts;
  report(): RelayReport;
  left(): Promise<LeftMessages>;
  resetBackoff(topic: string): Promise<number>;
}

export function createRelayEngine(options: RelayEngineOptions): RelayEngine {
  const { database, broker, layout, settings, events, cutoff } = options;
  const { clock, publishTimeoutMs } = settings;
  const owner = randomUUID();
  const topics = broker.routes?.topics;
  const store = database.relayStore({ layout, topics });
  const refusals = createRefusals(settings);
  const source = createSource({ database, layout, settings, store, topics, cutoff, onRowRefused: refusals.refused });
  const reports = createRelayReports(settings, events);
  const [freed, wakeUp, heartbeatDue] = [createWakeUp(clock), createWakeUp(clock), createWakeUp(clock)];

  function lookAgain(): void {
    scans.restart();
    wakeUp.ring();
  }

  const window = createInFlightWindow({
    added: (messages) => room.entered(messages),
    removed(messages) {
      room.left(messages);
      for (const key of new Set(messages.map(({ row }) => row.orderingKey))) {
        if (key === null || window.keyBusy(key)) continue;
        scans.keyFreed();
        followers.keyFreed(key);
      }
      // Some may have gone back to pending, unseen by a scan under way.
      scans.touched();
      freed.ring();
    },
  });
  const keeper = createLeaseKeeper({
    settings,
    leases: store.leases,
    owner,
    window,
    // Recovered rows may lie before the position.
    ...leaseEvents(settings, reports, events, () => scans.restart()),
    onSessionLost: heartbeatDue.ring,
  });
  const parking = createParking({
    broker,
    store,
    settings,
    keeper,
    reports,
    events,
    setsBehind: () => source.abilities.setsBehind,
    onRelease: lookAgain,
    // After an error the messages come due later by themselves.
    onTopicBack: (topic) => void reported(reports, "reset backoff", housekeeping.resetBackoff(topic)),
  });
  const { room, health, followers } = parking;
  const plan = createScanPlan({ store, room, clock, isAble: () => source.abilities.scansByTopic });
  const oldTransactions = createOldTransactions({ housekeeping: store.housekeeping, settings });
  const scans = createScans({ store, settings, keeper, window, room, plan, took: oldTransactions.scanTook });
  const hasClaimToken = layout.columns.lockVersion !== undefined;
  const settled = settlerEvents({ settings, reports, window, followers });
  const settler = createSettler({ store, keeper, settings, clock, hasClaimToken, events: settled });
  const publisher = createPublisher({ broker, clock, publishTimeoutMs });
  const transactionOf = (group: readonly InFlight[]) =>
    createSameTransaction({ database, store, keeper, settings, clock }, group);
  const flow = createRelayFlow({ settings, keeper, window, health, publisher, settler, transactionOf });
  const claim = createClaim({ store, settings, keeper, window, giveBack: flow.giveBack });
  const { publish } = flow;
  const round = createRound({ store, layout, settings, keeper, window, scans, parking, refusals, claim, publish });
  const sendingSweep = createSendingSweep({ store, keeper, window, clock, publishTimeoutMs });
  const wake = wakeUp.ring;
  const kept = { store, keeper, settings, reports, events, followers, room, sendingSweep, oldTransactions, wake };
  const housekeeping = createHousekeeping(kept);
  const selfReport = createSelfReport({ ...kept, owner, broker, window, parking, heartbeatDue });
  const duty = createDuty({ settings, keeper, reports, store });
  const parts = { freed, wakeUp, heartbeatDue, parking, flow, publisher, round, housekeeping, source, selfReport };
  const runner = createRelayRunner({ settings, reports, keeper, duty, window, ...parts });
  return {
    ...runner,
    owner,
    counts: reports.counts,
    report: () => selfReport.now(),
    left: () => store.housekeeping.left(),
    resetBackoff: (topic) => housekeeping.resetBackoff(topic),
  };
}

const WITHOUT_LOCK =
  "this connection to the database holds no lock that other relays can see (a cluster, a proxy, or a platform " +
  "without /proc): should this relay be killed, its messages wait until its lease ends";

function leaseEvents(
  settings: RelaySettings,
  reports: RelayReports,
  events: EventEmitter<RelayEvents>,
  lookAgain: () => void,
): Pick<LeaseKeeperOptions, "onAcquired" | "onLost" | "onReleased" | "onNoLock"> {
  return {
    async onAcquired(shards, recovered) {
      settings.logger.info("acquired shards", { shards: shards.length, recovered });
      reports.recovered(recovered);
      events.emit("shardsAcquired", { shards, recovered });
      lookAgain();
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
    onNoLock() {
      settings.logger.info(WITHOUT_LOCK, { leaseMs: settings.leaseMs });
    },
  };
}

interface SettlerListeners {
  readonly settings: Pick<RelaySettings, "onFailed">;
  readonly reports: RelayReports;
  readonly window: InFlightWindow;
  readonly followers: Pick<Followers, "gone">;
}

/** Messages that are settled, fenced or lost leave the window. */
function settlerEvents({ settings, reports, window, followers }: SettlerListeners): SettlerEvents {
  return {
    onSettled(settlements) {
      reports.databaseBack("settle");
      for (const { message, outcome } of settlements) {
        const { id, orderingKey } = message.row;
        const passes = outcome.toState === "failed" && settings.onFailed === "skip";
        if (orderingKey !== null && (outcome.toState === "sent" || passes)) followers.gone(orderingKey, id);
      }
      window.remove(settlements.map(({ message }) => message));
      reports.settled(settlements);
    },
    onFenced(settlement, now) {
      reports.databaseBack("settle");
      window.remove([settlement.message]);
      reports.fenced(settlement, now);
    },
    onLost(settlement) {
      window.remove([settlement.message]);
      reports.outcomeLost(settlement);
    },
    onDatabaseError: (error) => reports.databaseAway("settle", error),
    onRefused: (settlement, error, isHeld) => reports.refused(settlement, error, isHeld),
  };
}

/** Work beside the loops; reports failure and recovery. */
async function reported(reports: RelayReports, part: string, work: Promise<unknown>): Promise<void> {
  try {
    await work;
    reports.databaseBack(part);
  } catch (error) {
    reports.databaseAway(part, error);
  }
}
