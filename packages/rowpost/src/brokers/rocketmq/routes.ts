/** What the server says about topics: whether one exists, and which kinds of messages it takes. */

import type { Failure } from "./failures.ts";

/** A topic that exists. */
export interface Route {
  /** `NORMAL`, `FIFO`, `DELAY`, `TRANSACTION`: more than one for a MIXED topic. */
  readonly accepts: ReadonlySet<string>;
}

export type RouteAnswer =
  | { readonly route: Route; readonly failure?: undefined }
  | { readonly route?: undefined; readonly failure: Failure };

/** Cached routes. */
export interface Routes {
  /** The route of a topic, asked for when it is not known. A route older than 30 s is used once more while it is asked for again. */
  find(topic: string): RouteAnswer | Promise<RouteAnswer>;
  /** Forgets a topic: the server contradicted its route. */
  drop(topic: string): void;
  /** Every route is asked for again at its next use, as after a lost connection: the broker may have come back with other topics. */
  expireAll(): void;
  /** Topics that exist, for the telemetry settings. */
  topics(): string[];
}

/** As the official clients do. */
const REFRESH_AFTER_MS = 30_000;
/** A topic that is missing is asked for at most once a second, however many publishes want it; the proxy itself may not see a new one for 20 s. */
const MISSING_FOR_MS = 1000;
/** Topics come out of a table, so a faulty program can make up any number of them. */
const MAX_TOPICS = 4096;

interface Entry {
  readonly answer: RouteAnswer;
  /** Monotonic; asked again from then on. */
  refreshAt: number;
}

export interface RoutesOptions {
  /** Asks the server. Never rejects. */
  readonly query: (topic: string) => Promise<RouteAnswer>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export function createRoutes({ query, now }: RoutesOptions): Routes {
  const entries = new Map<string, Entry>();
  const asking = new Map<string, Promise<RouteAnswer>>();

  const keep = (topic: string, answer: RouteAnswer): void => {
    const keepMs = answer.route === undefined ? MISSING_FOR_MS : REFRESH_AFTER_MS;
    entries.delete(topic); // to the end of the map: the oldest goes first
    entries.set(topic, { answer, refreshAt: now() + keepMs });
    for (const oldest of entries.keys()) {
      if (entries.size <= MAX_TOPICS) break;
      entries.delete(oldest);
    }
  };
  const ask = (topic: string): Promise<RouteAnswer> => {
    const running = asking.get(topic);
    if (running !== undefined) return running;
    const asked = query(topic).then((answer) => {
      asking.delete(topic);
      const entry = entries.get(topic);
      // Only what the server said about the topic is worth keeping; "not reachable" is not, and the last good route goes on.
      if (answer.route !== undefined || answer.failure.scope === "message") keep(topic, answer);
      else if (entry !== undefined) entry.refreshAt = now() + MISSING_FOR_MS;
      return answer;
    });
    asking.set(topic, asked);
    return asked;
  };

  return {
    find(topic) {
      const entry = entries.get(topic);
      if (entry === undefined) return ask(topic);
      if (now() < entry.refreshAt) return entry.answer;
      const asked = ask(topic);
      return entry.answer.route === undefined ? asked : entry.answer;
    },
    drop(topic) {
      entries.delete(topic);
    },
    expireAll() {
      for (const entry of entries.values()) entry.refreshAt = Number.NEGATIVE_INFINITY;
    },
    topics() {
      const names: string[] = [];
      for (const [topic, entry] of entries) if (entry.answer.route !== undefined) names.push(topic);
      return names;
    },
  };
}
