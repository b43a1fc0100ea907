/**
 * Runs scans: topics (scan-plan.ts), position (cursor.ts), size (scan-budget.ts), and the bodies
 * left out.
 */
import { grouped } from "../../runtime/grouped.ts";
import type { InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Room } from "../parking/room.ts";
import type { RelayStore, ScannedMessage, TopicScan } from "../store.ts";
import { type Branches, type Cursor, createCursor } from "./cursor.ts";
import { createScanBudget } from "./scan-budget.ts";
import type { Plan, ScanPlan } from "./scan-plan.ts";

export interface Scan {
  /** A row with a null body waits for the next scan. */
  readonly rows: readonly ScannedMessage[];
  readonly fromStart: boolean;
  /** No topic takes a message. */
  readonly nothingOpen: boolean;
  /** Showed every row that could go now, except those of closed topics. */
  readonly whole: boolean;
  /** Reached the end of the rows without a time, in all topics. */
  readonly complete: boolean;
  readonly dueFull: boolean;
  /** There may be more right behind it. */
  readonly more: boolean;
}

export interface Scans {
  next(shards: readonly number[]): Promise<Scan>;
  /** Whether topics that take nothing have due rows. Reads one row of each. */
  leavesClosed(shards: readonly number[]): Promise<boolean>;
  /** Rows were claimed, passed over, or may have become pending. */
  touched(): void;
  /** Nothing was touched since the sweep began. */
  readonly clean: boolean;
  keyFreed(): void;
  /** Rows may have become pending behind the position. */
  restart(): void;
}

export interface ScansOptions {
  readonly store: Pick<RelayStore, "scan" | "readBodies">;
  readonly settings: RelaySettings;
  readonly keeper: Pick<LeaseKeeper, "holdsAll">;
  readonly window: InFlightWindow;
  readonly room: Pick<Room, "of" | "bytesOf" | "closed">;
  readonly plan: ScanPlan;
  readonly took: (ms: number) => void;
}

const NO_ROWS: Scan = {
  rows: [],
  fromStart: true,
  nothingOpen: true,
  whole: false,
  complete: true,
  dueFull: false,
  more: false,
};
/** Part of a batch for a topic that was not full last time. */
const SMALL_SHARE = 8;
/** Rows of a topic with little room, when its first ones could not go. */
const PASSED_AT_ONCE = 100;

/** Topics whose cursors are remembered. */
const MOST_CURSORS = 256;

export function createScans({ store, settings, keeper, window, room, plan, took }: ScansOptions): Scans {
  const { clock, batchSize } = settings;
  const budget = createScanBudget(batchSize);
  const walk = createCursor(clock);
  let byTopic = new Map<string, Cursor>();
  /** A turn over all topics may take several scans. */
  let turn = { fromStart: true, complete: true, dueFull: false };
  let clean = true;

  async function ask(request: Omit<Parameters<RelayStore["scan"]>[0], "shards">, shards: readonly number[]) {
    const number = window.scanStarts();
    const startedMs = clock.monotonicMs();
    try {
      const rows = await store.scan({ ...request, shards: keeper.holdsAll ? undefined : shards });
      window.scanReturned(number);
      budget.returned(rows);
      const tookMs = clock.monotonicMs() - startedMs;
      took(tookMs);
      settings.metrics.observe("rowpost_scan_duration_ms", {}, tookMs);
      return rows;
    } catch (error) {
      budget.failed();
      throw error;
    }
  }

  async function scanAll(shards: readonly number[]): Promise<Scan> {
    const fromStart = walk.atStart;
    if (fromStart) clean = true;
    const most = budget.rows(batchSize);
    const asked = walk.ask(most, inFlightOf(undefined));
    const rows = await withBodies(await ask({ ...asked, bodyLimit: budget.bodyLimit(most) }, shards), shards);
    walk.returned(rows, asked, shards);
    plan.returned(undefined, rows, walk.full);
    const { complete, dueFull } = walk;
    const whole = complete && !dueFull;
    return { rows, fromStart, nothingOpen: false, whole, complete, dueFull, more: !complete || dueFull };
  }

  async function scanTopics(chosen: NonNullable<Plan>, shards: readonly number[]): Promise<Scan> {
    const cursors = chosen.topics.map((topic) => ({ topic, cursor: byTopic.get(topic) ?? createCursor(clock) }));
    byTopic = new Map(
      [...byTopic, ...cursors.map(({ topic, cursor }) => [topic, cursor] as const)].slice(-MOST_CURSORS),
    );
    if (chosen.isFirst) turn = { fromStart: true, complete: true, dueFull: false };
    turn.fromStart &&= cursors.every(({ cursor }) => cursor.atStart);
    const fromStart = chosen.isFirst && turn.fromStart;
    if (fromStart) clean = true;
    const full = cursors.filter(({ cursor }) => cursor.full).length;
    const asked = cursors.map(({ topic, cursor }) => {
      const sharers = cursor.full || cursors.length === 1 ? Math.max(1, full) : SMALL_SHARE;
      // Rows that could not go must not hide others from a probe.
      const least = cursor.atStart ? 1 : PASSED_AT_ONCE;
      const rows = Math.min(budget.rows(batchSize, { topic, sharers }), Math.max(least, room.of(topic)));
      return { topic, cursor, rows, scan: cursor.ask(rows, inFlightOf(topic)) };
    });
    const topics = asked.map(({ topic, scan }): TopicScan => ({ topic, ...scan }));
    const bodyLimit = budget.bodyLimit(asked.reduce((sum, { rows }) => sum + rows, 0));
    const limits = { afterId: "0", immediateLimit: 0, dueLimit: 0, bodyLimit };
    const rows = await withBodies(await ask({ ...limits, topics }, shards), shards);
    const found = grouped(rows, ({ topic }) => topic);
    for (const { topic, cursor, scan } of asked) cursor.returned(found.get(topic) ?? [], scan, shards);
    const isFull = cursors.some(({ cursor }) => cursor.full);
    plan.returned(chosen, rows, isFull);
    turn.complete &&= cursors.every(({ cursor }) => cursor.complete);
    const complete = !chosen.isPart && turn.complete;
    // A topic may get its first rows between looks. One scan may complete a walk; of several, each
    // must cover its topics.
    turn.dueFull ||= cursors.some(({ cursor }) => cursor.dueFull);
    const { dueFull } = turn;
    const whole = complete && !dueFull && chosen.looked && (chosen.isFirst || turn.fromStart);
    return { rows, fromStart, nothingOpen: false, whole, complete, dueFull, more: isFull || chosen.isPart };
  }

  /** Without the mark, rows in flight look like waiting ones (rule: listed-in-flight). */
  function inFlightOf(topic: string | undefined): Branches {
    const limits = { immediateLimit: 0, dueLimit: 0 };
    if (settings.sendingMark === "on") return limits;
    for (const { row } of window.entries()) {
      if (topic !== undefined && row.topic !== topic) continue;
      limits[row.due ? "dueLimit" : "immediateLimit"] += 1;
    }
    return limits;
  }

  async function withBodies(rows: readonly ScannedMessage[], shards: readonly number[]) {
    const ours = new Set(shards);
    const ids: string[] = [];
    const full = new Set<string>();
    let bytes = 0;
    for (const { id, shard, body, bodyBytes, topic } of rows) {
      if (body !== null || !ours.has(shard) || full.has(topic) || window.excludes(id) || room.of(topic) === 0) continue;
      const most = room.bytesOf(topic);
      // A body larger than any budget is read alone.
      const fits =
        bytes + bodyBytes <= Math.min(budget.bytes, most) || (bytes === 0 && most === Number.POSITIVE_INFINITY);
      if (fits) {
        ids.push(id);
        bytes += bodyBytes;
      } else full.add(topic);
    }
    if (ids.length === 0) return rows;
    const bodies = await store.readBodies(ids).catch((error: unknown) => {
      budget.failed();
      throw error;
    });
    return rows.map((row) => (row.body === null ? { ...row, body: bodies.get(row.id) ?? null } : row));
  }

  return {
    get clean() {
      return clean;
    },
    touched() {
      clean = false;
    },
    keyFreed() {
      walk.keyFreed();
      for (const cursor of byTopic.values()) cursor.keyFreed();
    },
    restart() {
      walk.restart();
      byTopic.clear();
      clean = false;
    },
    async next(shards) {
      const chosen = await plan.next();
      if (chosen?.topics.length === 0) {
        const isAnyClosed = room.closed().length + plan.closed().length > 0;
        if (isAnyClosed || !chosen.looked) return NO_ROWS;
        clean = true;
        return { ...NO_ROWS, nothingOpen: false, whole: true };
      }
      const scan = chosen === undefined ? await scanAll(shards) : await scanTopics(chosen, shards);
      await settings.reach("scanned");
      return scan;
    },
    async leavesClosed(shards) {
      const closed = plan.closed();
      if (closed.length === 0) return false;
      const one = { afterId: "0", immediateLimit: 1, dueLimit: 1 };
      const topics = closed.map((topic): TopicScan => ({ topic, ...one }));
      const rows = await ask({ ...one, topics, bodyLimit: 0 }, shards);
      return rows.length > 0;
    },
  };
}
