/** One poll loop and one LISTEN for all idle consumers of a queue. */
import type { AppendNews, QueueDatabase } from "../../databases/database.ts";
import { partitionOfId, queueMonth } from "../../message/queue-id.ts";
import { createPollPace } from "../../relay/pacing/poll-pace.ts";
import { createWakeUp } from "../../relay/pacing/wake-up.ts";
import { untilAborted } from "../../runtime/abort.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { atMost } from "../../runtime/deadline.ts";
import type { ConsumptionStore, Counters } from "../store.ts";
import type { ConsumerSettings } from "./options.ts";

export interface Watched {
  readonly store: Pick<ConsumptionStore, "counters" | "firstDue">;
  readonly settings: Pick<ConsumerSettings, "logger" | "poll" | "topic">;
  /** The counters changed or could not be read. */
  readonly onNews: () => void;
  readonly onDue: (firstDue: ReadonlyMap<number, number>) => void;
  /** Four times a second, with the delay of the event loop. */
  readonly onTick: (lateMs: number) => void;
}

export interface Seat {
  /** Counters for a round, as last read. */
  counters(): Promise<Counters>;
  /** The known counters may be too old for the next round. */
  forget(): void;
  /** There may be more up to the same counters. */
  found(): void;
  /** Returns true if the round used counters of an earlier one. */
  wantsNewer(): boolean;
  /** True: idle, waiting for news. */
  rest(isResting: boolean): void;
  leave(): Promise<void>;
}

export interface Watch {
  join(watched: Watched): Seat;
}

interface Place extends Watched {
  isResting: boolean;
  seen: Counters | undefined;
  /** How often newer counters were wanted: now, and before `seen` was read. */
  wanted: number;
  seenSince: number;
  readAtMs: number;
  isReused: boolean;
  /** Rings before the last look, and before `seen` was read. */
  rings: number;
  seenRings: number;
  /** Reads under way, and news they may have missed. */
  reads: number;
  heard: AppendNews[];
  /** `seen` has an append that no round has looked for. */
  hasNews: boolean;
  isAsking: boolean;
  isAskingDue: boolean;
}

const POLL_MS = 100;
/** Where the database notifies of appends. */
const NOTIFIED_POLL_MS = 1_000;
/** For redeliveries made due by a person or a partition's last owner. */
const DUE_MS = 1_000;
const TICK_MS = 250;
/** A busy consumer does not notice a pause for this long. */
const FRESH_MS = 50;
const PATIENCE_MS = 1_000;

export function createWatch(database: Pick<QueueDatabase, "doorbell" | "listen">, clock: Clock = systemClock): Watch {
  const places = new Set<Place>();
  const changed = createWakeUp(clock);
  let isNotified = false;
  const pace = createPollPace(
    {
      get minMs() {
        return Math.min(...[...places].map(({ settings: { poll } }) => poll.minMs));
      },
      get maxMs() {
        const most = isNotified ? NOTIFIED_POLL_MS : POLL_MS;
        return Math.min(...[...places].map(({ settings: { poll } }) => poll.maxMs ?? most));
      },
    },
    clock,
  );
  let lookAtMs = Number.POSITIVE_INFINITY;
  let rings = 0;
  let run: { readonly stopping: AbortController; readonly ended: Promise<unknown> } | undefined;

  function lookIn(ms: number): void {
    lookAtMs = Math.min(lookAtMs, clock.monotonicMs() + ms);
    changed.ring();
  }

  async function read(place: Place): Promise<Counters> {
    const before = rings;
    place.rings = before;
    if (place.reads === 0) place.heard = [];
    place.reads += 1;
    place.isReused = false;
    const since = place.wanted;
    const readAtMs = clock.monotonicMs();
    try {
      const seen = await place.store.counters();
      const heard = before === rings ? place.heard : [];
      place.seen = heard.reduce((counters, news) => withNews(counters, news) ?? counters, seen);
      place.seenSince = since;
      place.seenRings = before;
      place.readAtMs = readAtMs;
      return place.seen;
    } catch (error) {
      place.wanted += 1;
      throw error;
    } finally {
      place.reads -= 1;
    }
  }

  async function lookFor(place: Place): Promise<void> {
    if (place.isAsking) return;
    place.isAsking = true;
    const before = place.seen;
    try {
      if ((await read(place)) === before) return;
    } catch {
      // The consumer then reads by itself and logs a second failure.
    } finally {
      place.isAsking = false;
    }
    if (place.isResting) place.onNews();
  }

  async function look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const sinceCount = changed.count;
      const ms = lookAtMs - clock.monotonicMs();
      if (ms > 0) {
        await changed.wait({ sinceCount, ms, signal });
        continue;
      }
      lookAtMs = Number.POSITIVE_INFINITY;
      const resting = [...places].filter(({ isResting }) => isResting);
      if (resting.length === 0) continue;
      await atMost(PATIENCE_MS, Promise.all(resting.map(lookFor)));
      lookIn(pace.nextWaitMs());
    }
  }

  /** Hanging queries would each hold a connection. */
  async function askOne(place: Place): Promise<void> {
    if (place.isAskingDue) return;
    place.isAskingDue = true;
    await place.store.firstDue().then(place.onDue, () => undefined);
    place.isAskingDue = false;
  }

  async function askDue(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(DUE_MS, signal);
      for (const place of places) void askOne(place);
    }
  }

  async function tick(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const sinceMs = clock.monotonicMs();
      await clock.sleep(TICK_MS, signal);
      const lateMs = clock.monotonicMs() - sinceMs - TICK_MS;
      for (const { onTick } of places) onTick(lateMs);
    }
  }

  async function listen(signal: AbortSignal): Promise<void> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const listening = await database.listen();
        isNotified = listening !== undefined;
        await untilAborted(signal);
        isNotified = false;
        await listening?.close();
      } catch (error) {
        const [first] = places;
        if (failures === 1) first?.settings.logger.warn("the database is away", { loop: "listen", error });
        await clock.sleep(retryPauseMs(failures), signal);
      }
    }
  }

  /** Returns false when a look is needed. */
  function hear(place: Place, news: AppendNews): boolean {
    if (place.settings.topic !== news.topic) return true;
    if (place.reads > 0) {
      place.heard.push(news);
      return true;
    }
    const { seen, seenRings, seenSince, wanted } = place;
    // A ring without news may be a pause.
    if (seen === undefined || seenRings !== rings || seenSince !== wanted) return false;
    const newer = withNews(seen, news);
    if (newer === undefined) return false;
    place.seen = newer;
    place.hasNews = true;
    place.onNews();
    return true;
  }

  function begin(): NonNullable<typeof run> {
    const stopping = new AbortController();
    const { signal } = stopping;
    const unsubscribe = database.doorbell.subscribe((news) => {
      if (news !== undefined && [...places].every((place) => hear(place, news))) return;
      rings += 1;
      lookIn(0);
    });
    const ended = Promise.all([look(signal), askDue(signal), tick(signal), listen(signal)]);
    return { stopping, ended: ended.finally(unsubscribe) };
  }

  return {
    join(watched) {
      const place: Place = {
        ...watched,
        isResting: false,
        seen: undefined,
        wanted: 1,
        seenSince: 0,
        seenRings: rings,
        reads: 0,
        heard: [],
        hasNews: false,
        readAtMs: 0,
        isReused: false,
        rings,
        isAsking: false,
        isAskingDue: false,
      };
      places.add(place);
      run ??= begin();
      return {
        async counters() {
          const freshMs = place.hasNews ? NOTIFIED_POLL_MS : FRESH_MS;
          place.hasNews = false;
          const isOld = place.seenSince !== place.wanted || clock.monotonicMs() - place.readAtMs > freshMs;
          if (isOld || place.seen === undefined) return await read(place);
          place.isReused = true;
          return place.seen;
        },
        forget() {
          place.wanted += 1;
        },
        found: () => pace.found(),
        wantsNewer() {
          const { isReused } = place;
          if (isReused) place.wanted += 1;
          // A round without partitions reads none and would ask forever.
          place.isReused = false;
          return isReused;
        },
        rest(isResting) {
          place.isResting = isResting;
          if (isResting) lookIn(place.rings === rings ? pace.nextWaitMs() : 0);
        },
        async leave() {
          places.delete(place);
          if (places.size > 0) return;
          const last = run;
          run = undefined;
          last?.stopping.abort();
          await last?.ended;
        },
      };
    },
  };
}

/**
 * Undefined: a look is needed. An id of another month moves a reader to that month's table, which
 * only this topic's own counters may do: all schemas of a database share the channel. Within the
 * month the id only bounds the read.
 */
function withNews(counters: Counters, { lastId }: AppendNews): Counters | undefined {
  const { lastIds } = counters;
  const partition = partitionOfId(lastId);
  const known = lastIds.get(partition);
  if (known === undefined || queueMonth(known) !== queueMonth(lastId)) return undefined;
  if (compareIds(known, lastId) >= 0) return counters;
  return { ...counters, lastIds: new Map(lastIds).set(partition, lastId) };
}
