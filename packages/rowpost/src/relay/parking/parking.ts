/** Assembles the parts behind room.ts. */
import type { Broker } from "../../brokers/broker.ts";
import type { EventEmitter } from "../../runtime/events.ts";
import type { RelayEvents } from "../events.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { RelayReports } from "../reports.ts";
import type { RelayStore } from "../store.ts";
import { createFollowers, type Followers } from "./followers.ts";
import { createHealth, type Health } from "./health.ts";
import { createOutlets, type Outlets } from "./outlets.ts";
import { createRoom, type Room } from "./room.ts";
import { createSetAside, type SetAside } from "./set-aside.ts";
import { createTopicBreaker, type TopicBreaker } from "./topic-breaker.ts";

export interface Parking {
  readonly room: Room;
  readonly breaker: TopicBreaker;
  readonly outlets: Outlets;
  readonly health: Health;
  readonly followers: Followers;
  readonly setAside: SetAside;
}

export interface ParkingOptions {
  readonly broker: Broker;
  readonly store: RelayStore;
  readonly settings: RelaySettings;
  readonly keeper: LeaseKeeper;
  readonly reports: RelayReports;
  readonly events: EventEmitter<RelayEvents>;
  /** See {@link createFollowers}. */
  readonly setsBehind: () => boolean;
  /** More messages may go: scan again from the start. */
  readonly onRelease: () => void;
  /** A topic's destination works again: its backed-off messages may come forward. */
  readonly onTopicBack: (topic: string) => void;
}

export function createParking(options: ParkingOptions): Parking {
  const { broker, store, settings, keeper, reports, events, setsBehind, onRelease, onTopicBack } = options;
  const { clock, batchSize, windowSize, windowBytes } = settings;
  const outlets = createOutlets({ broker, clock, windowSize });
  const breaker = createTopicBreaker(clock);
  return {
    breaker,
    outlets,
    room: createRoom({ outlets, breaker, batchSize, windowBytes }),
    health: createHealth({ settings, outlets, breaker, events, onTopicBack, onBrokerBack: onRelease }),
    followers: createFollowers({ store, keeper, settings, isAble: setsBehind, wake: onRelease }),
    setAside: createSetAside({ store, keeper, reports, settings }),
  };
}
