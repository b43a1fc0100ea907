/** What the server says about topics: whether one exists, and which kinds of messages it takes. */

import { oneAtATime } from "../publishing/one-at-a-time.ts";
import type { Failure } from "./rules.ts";

export interface Route {
  /** `NORMAL`, `FIFO`, `DELAY`, `TRANSACTION`: more than one for a MIXED topic. */
  readonly accepts: ReadonlySet<string>;
}

/** What is known of a topic; each protocol has its own idea of a route. */
export type RouteAnswer<Found = Route> =
  | { readonly route: Found; readonly failure?: undefined }
  | { readonly route?: undefined; readonly failure: Failure };

export interface Routes<Found = Route> {
  /** Asked for when it is not known. After 30 s it is used once more while it is asked for. */
  find(topic: string): RouteAnswer<Found> | Promise<RouteAnswer<Found>>;
  /** The server contradicted it: it is asked for anew. Returns the failure, perhaps milder. */
  contradicted(topic: string, failure: Failure): Failure;
  /** All are asked for anew: after a lost connection a broker may have other topics. */
  expireAll(): void;
  /** Topics that exist, for the telemetry settings. */
  topics(): string[];
}

/** As the official clients do. */
const REFRESH_AFTER_MS = 30_000;
/** A missing topic is asked for so often at most; the proxy may not see a new one for 20 s. */
const MISSING_FOR_MS = 1000;
/**
 * A topic that was there and is missing now is first taken for a broker that restarts: the proxy
 * answers before its broker has registered its topics (seen for 10 s after a SIGKILL), and attempts
 * must not be counted for that. Its last route goes on meanwhile, as the broker may store messages
 * all that time; where it does not, SendMessage says so. After this long it is taken for deleted.
 */
const RESTART_MS = 60_000;
/** Topics come out of a table, so a faulty program can make up any number of them. */
const MAX_TOPICS = 4096;

interface Entry<Found> {
  answer: RouteAnswer<Found>;
  /** Monotonic; asked again from then on. */
  refreshAt: number;
  /** It has been there. */
  readonly known: boolean;
  /** What the server said of it then, unless it has contradicted that. */
  lastRoute: RouteAnswer<Found> | undefined;
  /** Monotonic; since when a known topic is said to be missing. */
  missingSince: number | undefined;
}

export interface RoutesOptions<Found = Route> {
  /** Asks the server. Never rejects. */
  readonly query: (topic: string) => Promise<RouteAnswer<Found>>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export function createRoutes<Found = Route>({ query, now }: RoutesOptions<Found>): Routes<Found> {
  const entries = new Map<string, Entry<Found>>();
  const shared = oneAtATime<RouteAnswer<Found>>();

  const keep = (topic: string, entry: Entry<Found>): RouteAnswer<Found> => {
    entries.delete(topic); // to the end of the map: the oldest goes first
    entries.set(topic, entry);
    for (const oldest of entries.keys()) {
      if (entries.size <= MAX_TOPICS) break;
      entries.delete(oldest);
    }
    return entry.answer;
  };
  const missing = (topic: string, failure: Failure, isSendRefused: boolean): RouteAnswer<Found> => {
    const before = entries.get(topic);
    const known = before?.known ?? false;
    const lastRoute = before?.lastRoute;
    const missingSince = known ? (before?.missingSince ?? now()) : undefined;
    const restarting = missingSince !== undefined && now() - missingSince < RESTART_MS;
    const told: Failure = restarting ? { ...failure, scope: "destination", retryAfterMs: MISSING_FOR_MS } : failure;
    const answer = restarting && !isSendRefused ? lastRoute : undefined;
    const refreshAt = now() + MISSING_FOR_MS;
    return keep(topic, { answer: answer ?? { failure: told }, refreshAt, known, lastRoute, missingSince });
  };
  const told = (topic: string, answer: RouteAnswer<Found>): RouteAnswer<Found> => {
    if (answer.failure === undefined) {
      const refreshAt = now() + REFRESH_AFTER_MS;
      return keep(topic, { answer, refreshAt, known: true, lastRoute: answer, missingSince: undefined });
    }
    if (answer.failure.scope === "message") return missing(topic, answer.failure, false);
    // "Not reachable" says nothing about the topic: the last good route goes on.
    const before = entries.get(topic);
    if (before !== undefined) before.refreshAt = now() + MISSING_FOR_MS;
    return answer;
  };
  const ask = (topic: string): Promise<RouteAnswer<Found>> =>
    shared(topic, async () => told(topic, await query(topic)));

  return {
    find(topic) {
      const entry = entries.get(topic);
      if (entry === undefined) return ask(topic);
      if (now() < entry.refreshAt) return entry.answer;
      const asked = ask(topic);
      return entry.answer.route === undefined ? asked : entry.answer;
    },
    contradicted(topic, failure) {
      const entry = entries.get(topic);
      if (entry === undefined) return failure;
      if (failure.topicIsMissing) {
        const answer = missing(topic, failure, true);
        return { ...(answer.failure ?? failure), routeIsWrong: false };
      }
      entry.answer = { failure };
      // While the proxy does not know the new type yet, the old one would only be refused.
      entry.lastRoute = undefined;
      entry.refreshAt = Number.NEGATIVE_INFINITY;
      return { ...failure, routeIsWrong: false };
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
