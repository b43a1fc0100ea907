/**
 * One outlet for each broker behind `routes`, else one. Each has its own connection gate and
 * places, so that a broker that is away or slow stops only its own topics.
 */
import type { Broker } from "../../brokers/broker.ts";
import type { Clock } from "../../runtime/clock.ts";
import { createFairShares, type FairShares } from "../../runtime/fair-shares.ts";
import { type ConnectionGate, createConnectionGate } from "./connection-gate.ts";

export interface Outlet {
  readonly name: string;
  readonly gate: ConnectionGate;
  readonly places: FairShares;
}

export interface Outlets {
  readonly all: readonly Outlet[];
  /** Patterns of the relay's topics; undefined: every topic. */
  readonly topics: readonly string[] | undefined;
  /** False: other relays take it. */
  takes(topic: string): boolean;
  of(topic: string): Outlet;
  /** Recent topics of this outlet; undefined: it takes all. */
  topicsOf(name: string): readonly string[] | undefined;
}

export interface OutletsOptions {
  readonly broker: Pick<Broker, "name" | "routes">;
  readonly clock: Clock;
  /** Places that one topic may use alone. */
  readonly windowSize: number;
}

/** Topics whose outlet is remembered. */
const REMEMBERED_TOPICS = 10_000;

export function createOutlets({ broker, clock, windowSize }: OutletsOptions): Outlets {
  const make = (name: string): Outlet => ({
    name,
    gate: createConnectionGate(clock),
    places: createFairShares({ capacity: windowSize * 2 }),
  });
  const { routes } = broker;
  const byName = new Map((routes?.brokers ?? [broker.name]).map((name) => [name, make(name)]));
  const all = [...byName.values()];
  // The message fails: no broker takes its topic.
  const nowhere = make("");
  const byTopic = new Map<string, Outlet>();

  return {
    all,
    topics: routes?.topics,
    takes: (topic) => routes?.topics === undefined || routes.brokerOf(topic) !== undefined,
    topicsOf(name) {
      if (routes === undefined) return undefined;
      return [...byTopic].flatMap(([topic, outlet]) => (outlet.name === name ? [topic] : []));
    },
    of(topic) {
      if (routes === undefined) return all[0] ?? nowhere;
      const known = byTopic.get(topic);
      if (known !== undefined) return known;
      const found = byName.get(routes.brokerOf(topic) ?? "") ?? nowhere;
      if (byTopic.size >= REMEMBERED_TOPICS) byTopic.clear();
      byTopic.set(topic, found);
      return found;
    },
  };
}
