import { oneAtATime } from "../publishing/one-at-a-time.ts";
import type { Failure } from "./rules.ts";

export interface Route {
  /** `NORMAL`, `FIFO`, `DELAY`, `TRANSACTION`: more than one for a MIXED topic. */
  readonly accepts: ReadonlySet<string>;
}

/** A topic's route or failure; the route's type depends on the protocol. */
export type RouteAnswer<Found = Route> =
  | { readonly route: Found; readonly failure?: undefined }
  | { readonly route?: undefined; readonly failure: Failure };

export interface Routes<Found = Route> {
  /** Queries an unknown topic. After 30 s the cached answer is used while it is refreshed. */
  find(topic: string): RouteAnswer<Found> | Promise<RouteAnswer<Found>>;
  /**
   * The server contradicted the route, so it is queried anew. Returns the failure, perhaps milder.
   */
  contradicted(topic: string, failure: Failure): Failure;
  /** Queries all anew: after a lost connection a broker may have other topics. */
  expireAll(): void;
  topics(): string[];
}

/** As the official clients do. */
const REFRESH_AFTER_MS = 30_000;
/**
 * Shortest interval between queries of a missing topic; the proxy may not see a new one for 20 s.
 */
const MISSING_FOR_MS = 1000;
/**
 * A known topic that is suddenly missing is first taken for a restarting broker: the proxy answers
 * before its broker has registered its topics (seen for 10 s after a SIGKILL), and that must not
 * cost attempts. Its last route stays in use, as the broker may store messages all the time; if
 * not, SendMessage fails. After this long the topic counts as deleted.
 */
const RESTART_MS = 60_000;
/** A faulty program can put any number of topics into the table. */
const MAX_TOPICS = 4096;

interface Entry<Found> {
  answer: RouteAnswer<Found>;
  /** Monotonic; refreshed from then on. */
  refreshAt: number;
  readonly known: boolean;
  /** The last route, unless the server contradicted it. */
  lastRoute: RouteAnswer<Found> | undefined;
  /** Monotonic; when a known topic was first missing. */
  missingSince: number | undefined;
}

export interface RoutesOptions<Found = Route> {
  /** Never rejects. */
  readonly query: (topic: string) => Promise<RouteAnswer<Found>>;
  readonly now: () => number;
}

export function createRoutes<Found = Route>({ query, now }: RoutesOptions<Found>): Routes<Found> {
  const entries = new Map<string, Entry<Found>>();
  const shared = oneAtATime<RouteAnswer<Found>>();

  const keep = (topic: string, entry: Entry<Found>): RouteAnswer<Found> => {
    entries.delete(topic); // moves it to the end of the map: the oldest is evicted first
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
    // "Not reachable" says nothing about the topic, so the last good route stays.
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
      // Until the proxy knows the new type, messages of the old one would be refused.
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
