/**
 * The outlets of a relay: one for each broker behind `routes`, else the only one. Each has a connection gate and a window of its own, so that a
 * broker that is away, silent or slow stops its own topics and no others.
 */
import type { Broker } from "../brokers/broker.ts";
import type { Clock } from "../runtime/clock.ts";
import { type ConnectionGate, createConnectionGate } from "./connection-gate.ts";

/** The way to one broker. */
export interface Outlet {
  /** The broker's name. */
  readonly name: string;
  readonly gate: ConnectionGate;
  /** Messages of its topics in the window. */
  readonly inFlight: number;
}

export interface Outlets {
  /** There are several, so rows of a stopped outlet have to be told from others. */
  readonly several: boolean;
  /** The outlet that takes the topic. */
  of(topic: string): Outlet;
  /** Messages that a scan may bring now: as many as the emptiest outlet takes, 0 when none takes any. */
  readonly room: number;
  /** Every broker is away, and none is to be probed yet. */
  readonly away: boolean;
  /** There are several outlets, and that of this topic takes nothing now. */
  isStopped(topic: string): boolean;
  /** Messages that may be claimed now for this outlet: its free places, 1 for a probe, or 0. */
  roomOf(outlet: Outlet): number;
  /** Of these, as many for each outlet as it has room for, from the front: what stays of an ordering key is its beginning. */
  admit<Item>(items: readonly Item[], topicOf: (item: Item) => string): readonly Item[];
  /** A message of this topic is in the window from now on. */
  entered(topic: string): void;
  left(topic: string): void;
  /** Milliseconds since this outlet was first seen to take no message; 0 when it took some at the last {@link Outlets.look}. */
  stoppedMs(outlet: Outlet): number;
  /** Notes which outlets take messages. Once a round. */
  look(): void;
  /** No outlet is stopped. */
  readonly flowing: boolean;
  /** Wait before the next scan, when the poll alone would wait this long: shorter when a broker is to be probed before. */
  waitMs(pollMs: () => number): number;
}

/** Share of an outlet's window that must be free before a scan is worth its statement. */
const ROOM_SHARE = 4;
/** Topics whose outlet is remembered. */
const REMEMBERED_TOPICS = 10_000;

export interface OutletsOptions {
  readonly broker: Pick<Broker, "name" | "routes">;
  readonly clock: Clock;
  /** In flight at most, for each outlet. */
  readonly windowSize: number;
  readonly batchSize: number;
}

/** Makes the outlets, each open and empty. */
export function createOutlets({ broker, clock, windowSize, batchSize }: OutletsOptions): Outlets {
  const make = (name: string): Outlet & { inFlight: number } => ({
    name,
    gate: createConnectionGate(clock),
    inFlight: 0,
  });
  const { routes } = broker;
  const outlets = new Map((routes?.brokers ?? [broker.name]).map((name) => [name, make(name)]));
  const all = [...outlets.values()];
  // Takes what no route takes: those messages fail, without a broker.
  const nowhere = make("");
  const byTopic = new Map<string, ReturnType<typeof make>>();
  const stoppedSinceMs = new Map<Outlet, number>();

  function of(topic: string): ReturnType<typeof make> {
    if (routes === undefined) return all[0] ?? nowhere;
    const known = byTopic.get(topic);
    if (known !== undefined) return known;
    const found = outlets.get(routes.brokerOf(topic) ?? "") ?? nowhere;
    if (byTopic.size >= REMEMBERED_TOPICS) byTopic.clear();
    byTopic.set(topic, found);
    return found;
  }

  /** A probe goes alone: what is still under way may be the answer. */
  function roomOf({ gate, inFlight }: Outlet): number {
    const allowance = gate.allowance();
    if (allowance <= 1) return inFlight === 0 ? allowance : 0;
    const free = Math.max(0, windowSize - inFlight);
    return free < Math.ceil(batchSize / ROOM_SHARE) && inFlight > 0 ? 0 : free;
  }

  return {
    several: routes !== undefined,
    of,
    get room() {
      // A probe is one message, but which: the scan must show those that may go.
      return Math.max(0, ...all.map((outlet) => (roomOf(outlet) === 1 ? windowSize : roomOf(outlet))));
    },
    get away() {
      return all.every(({ gate }) => gate.allowance() === 0);
    },
    roomOf,
    isStopped: (topic) => routes !== undefined && roomOf(of(topic)) === 0,
    admit(items, topicOf) {
      const room = new Map<Outlet, number>();
      return items.filter((item) => {
        const outlet = of(topicOf(item));
        const left = room.get(outlet) ?? roomOf(outlet);
        room.set(outlet, left - 1);
        return left > 0;
      });
    },
    entered(topic) {
      of(topic).inFlight += 1;
    },
    left(topic) {
      of(topic).inFlight -= 1;
    },
    stoppedMs(outlet) {
      const sinceMs = stoppedSinceMs.get(outlet);
      return sinceMs === undefined ? 0 : clock.monotonicMs() - sinceMs;
    },
    look() {
      for (const outlet of all) {
        if (outlet.gate.open && roomOf(outlet) > 0) stoppedSinceMs.delete(outlet);
        else if (!stoppedSinceMs.has(outlet)) stoppedSinceMs.set(outlet, clock.monotonicMs());
      }
    },
    get flowing() {
      return stoppedSinceMs.size === 0;
    },
    waitMs(pollMs) {
      // One that is due is waited for at the pace of the poll: its probe is under way, or no message may be the probe yet.
      const probes = all.map(({ gate }) => gate.waitMs()).filter((ms) => ms > 0);
      return probes.length === all.length ? Math.min(...probes) : Math.min(pollMs(), ...probes);
    },
  };
}
