/**
 * How much a topic may take now. Combines all causes that hold back a topic, so that scans can
 * leave it out (rule: isolation):
 *
 * | cause                                  | until                               | kept in            |
 * | -------------------------------------- | ----------------------------------- | ------------------ |
 * | its broker cannot be reached           | a probe is answered                 | connection-gate.ts |
 * | its destination is away or throttled,  | its rest is over; then one message  | topic-breaker.ts   |
 * | or gives no answer                     | finds out                           |                    |
 * | all its messages are refused           | 1 s; then a hundred find out        | topic-breaker.ts   |
 * | it uses up its share of the window     | one of its messages is settled      | this file          |
 * | another relay takes it (`routes`)      | ever                                | outlets.ts         |
 *
 * None of this is written to the table. Causes that concern single rows are, once: followers of an
 * ordering key are set behind their head (followers.ts), a row that can never be sent becomes
 * `failed`, one under a suspension rule `suspended` (set-aside.ts).
 *
 * The window has twice the places that one topic may use alone; each topic may hold as many
 * messages and bytes as are free (runtime/fair-shares.ts). A topic that hangs takes half of the
 * window.
 */
import { createFairShares } from "../../runtime/fair-shares.ts";
import type { InFlight } from "../in-flight.ts";
import type { Outlet, Outlets } from "./outlets.ts";
import type { TopicBreaker } from "./topic-breaker.ts";

export interface Room extends Pick<Outlets, "takes" | "topics"> {
  of(topic: string): number;
  /** Infinity: even a body larger than any share. */
  bytesOf(topic: string): number;
  /** This relay's topics that take nothing now. */
  closed(): readonly string[];
  /** No topic takes a message: nothing to scan for. */
  readonly away: boolean;
  /**
   * Messages that fit, in id order. Once a topic is full nothing later of it goes, to keep the
   * order of keys.
   */
  admit(messages: readonly InFlight[]): Admission;
  entered(messages: readonly InFlight[]): void;
  left(messages: readonly InFlight[]): void;
  /** The poll's pause, or shorter when a broker probe is due. */
  waitMs(pollMs: () => number): number;
}

export interface Admission {
  readonly go: readonly InFlight[];
  readonly left: readonly InFlight[];
}

interface Load {
  readonly topic: string;
  count: number;
  /** Bytes of their bodies. */
  size: number;
}

export interface RoomOptions {
  readonly outlets: Outlets;
  readonly breaker: Pick<TopicBreaker, "allowance" | "open">;
  readonly batchSize: number;
  /** Bytes that one topic may use alone. */
  readonly windowBytes: number;
}

/** Free part of a batch that makes a scan for a busy topic worthwhile. */
const WORTH_SHARE = 4;

export function createRoom({ outlets, breaker, batchSize, windowBytes }: RoomOptions): Room {
  const bytes = createFairShares({ capacity: windowBytes * 2 });
  const underWay = new Map<string, number>();

  function of(topic: string): number {
    if (!outlets.takes(topic)) return 0;
    const { gate, places } = outlets.of(topic);
    const allowance = Math.min(gate.allowance(), breaker.allowance(topic));
    const busy = underWay.has(topic);
    // A message still under way may bring the answer.
    if (!gate.open) return busy ? 0 : allowance;
    const free = places.free(topic);
    if (busy && (free < Math.ceil(batchSize / WORTH_SHARE) || bytes.free(topic) === 0)) return 0;
    return Math.max(0, Math.min(allowance, free));
  }

  /** A body larger than any share goes when little else, and nothing of its topic, is under way. */
  function fits(topic: string, size: number): boolean {
    return size <= bytes.free(topic) || (bytes.usedBy(topic) === 0 && bytes.used <= windowBytes);
  }

  function enter({ topic, count, size }: Load): void {
    underWay.set(topic, (underWay.get(topic) ?? 0) + count);
    outlets.of(topic).places.take(topic, count);
    bytes.take(topic, size);
  }

  function leave({ topic, count, size }: Load): void {
    const left = (underWay.get(topic) ?? 0) - count;
    if (left > 0) underWay.set(topic, left);
    else underWay.delete(topic);
    outlets.of(topic).places.giveBack(topic, count);
    bytes.giveBack(topic, size);
  }

  function admits({ topic, count, size }: Load): boolean {
    const { gate, places } = outlets.of(topic);
    return gate.open && count <= of(topic) && count <= places.free(topic) && size <= bytes.free(topic);
  }

  function select(messages: readonly InFlight[], entered: Load[]): Admission {
    const rooms = new Map<string, number>();
    const probed = new Set<Outlet>();
    const [go, left]: [InFlight[], InFlight[]] = [[], []];
    for (const message of messages) {
      const { topic, bodyBytes } = message.row;
      const outlet = outlets.of(topic);
      const free = rooms.get(topic) ?? of(topic);
      const isIn = free > 0 && outlet.places.free(topic) > 0 && fits(topic, bodyBytes) && !probed.has(outlet);
      rooms.set(topic, isIn ? free - 1 : 0);
      (isIn ? go : left).push(message);
      if (!isIn) continue;
      if (!outlet.gate.open) probed.add(outlet);
      const load = { topic, count: 1, size: bodyBytes };
      enter(load);
      entered.push(load);
    }
    return { go, left };
  }

  return {
    of,
    takes: (topic) => outlets.takes(topic),
    topics: outlets.topics,
    bytesOf: (topic) => (fits(topic, Number.POSITIVE_INFINITY) ? Number.POSITIVE_INFINITY : bytes.free(topic)),
    closed: () => [...new Set([...underWay.keys(), ...breaker.open()])].filter((topic) => of(topic) === 0),
    get away() {
      return outlets.all.every(({ gate }) => gate.allowance() === 0);
    },
    admit(messages) {
      // Counted while deciding.
      const entered: Load[] = [];
      let isWhole = true;
      for (const load of loadsOf(messages)) {
        isWhole = admits(load);
        if (!isWhole) break;
        enter(load);
        entered.push(load);
      }
      if (!isWhole) for (const load of entered.splice(0)) leave(load);
      const admission = isWhole ? { go: messages, left: [] } : select(messages, entered);
      for (const load of entered) leave(load);
      return admission;
    },
    entered(messages) {
      for (const load of loadsOf(messages)) {
        outlets.of(load.topic).gate.taken();
        enter(load);
      }
    },
    left(messages) {
      for (const load of loadsOf(messages)) leave(load);
    },
    waitMs(pollMs) {
      // A due probe is under way, or no message may be the probe yet.
      const probes = outlets.all.map(({ gate }) => gate.waitMs()).filter((ms) => ms > 0);
      return probes.length === outlets.all.length ? Math.min(...probes) : Math.min(pollMs(), ...probes);
    },
  };
}

function loadsOf(messages: readonly InFlight[]): Iterable<Load> {
  const loads = new Map<string, Load>();
  let last: Load | undefined;
  for (const { row } of messages) {
    if (last?.topic !== row.topic) {
      last = loads.get(row.topic) ?? { topic: row.topic, count: 0, size: 0 };
      loads.set(row.topic, last);
    }
    last.count += 1;
    last.size += row.bodyBytes;
  }
  return loads.values();
}
