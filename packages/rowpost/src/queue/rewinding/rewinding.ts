/**
 * Moves a group in one transaction that locks the progress of its partitions first: a settle, a
 * takeover, another rewind or the dropping of a month is seen, or finds the new epoch. No message
 * row is touched.
 */

import type { QueueSql } from "../../databases/database.ts";
import type { Cold } from "../../databases/sql/cold.ts";
import { openRoom, type Room, type Run } from "../../databases/sql/queue/room.ts";
import { lastIdsIn } from "../../databases/sql/queue/values.ts";
import { integer, type Row, text, textOrNull } from "../../databases/sql/rows.ts";
import { firstIdOf, queueMonth } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { readCounters, readProgress } from "../consuming/statements.ts";
import type { GroupKey } from "../group-key.ts";
import { droppedMonths } from "../retention/statements.ts";
import { type MilestonesRequest, messageBack, messagesBefore, setTopicMilestones } from "./milestones.ts";
import type {
  CountedPartition,
  RewindDone,
  RewindEntry,
  RewindPlan,
  RewindRefusal,
  RewindRequest,
  RewoundPartition,
} from "./requests.ts";
import * as own from "./statements.ts";

export interface Rewinding {
  /** Where each partition would go, and what lies in between. */
  plan(request: RewindRequest): Promise<RewindPlan | RewindRefusal>;
  /** In one transaction, all or nothing. */
  rewind(request: RewindRequest): Promise<RewindDone | RewindRefusal>;
  /**
   * Until it `isOver` or another process does it; returns the month to continue with. Default: the
   * previous month. Counts work without milestones by walking.
   */
  setMilestones(request: MilestonesRequest): Promise<number>;
  /** Newest first. */
  log(key: GroupKey, limit: number): Promise<RewindEntry[]>;
  close(): Promise<void>;
}

/** State of a group and its topic. */
interface Situation {
  readonly partitions: readonly { readonly partition: number; readonly nextId: string; readonly round: number }[];
  /** After the last message of each partition. */
  readonly ends: ReadonlyMap<number, string>;
  /** Months with a table, in order. */
  readonly months: readonly number[];
  readonly dropped: readonly number[];
  /** Of this group, newest first. */
  readonly lastRewind: readonly RewindEntry[];
}

interface Moves {
  /** With the current round of each. */
  readonly partitions: readonly (RewoundPartition & { readonly round: number })[];
  readonly droppedMonths: readonly number[];
  /** Months with a table, in order. */
  readonly months: readonly number[];
  /** Number of the last rewind, or 0. */
  readonly lastRewind: number;
}

/** More than a topic has partitions. */
const A_REWIND = 64;

/** Opens no connection before its first use. */
export function createRewinding(sql: QueueSql): Rewinding {
  const room = openRoom(sql, { lockWaitTimeoutMs: 10_000, statementTimeoutMs: 120_000 });
  return room.plainly<Rewinding>({
    plan: (request) =>
      room.reading(async (run) => {
        const moves = await planned(room, run, request, readProgress(request));
        if ("refused" in moves) return moves;
        const partitions: CountedPartition[] = [];
        for (const { partition, from, to } of moves.partitions) {
          const counted = await count(run, request, { from, to, partition, months: moves.months });
          partitions.push({ partition, from, to, ...counted });
        }
        return { partitions, droppedMonths: moves.droppedMonths };
      }),
    rewind: (request) =>
      room.transaction(async (run) => {
        const moves = await planned(room, run, request, own.lockProgress(request));
        return "refused" in moves ? moves : await move(run, request, moves);
      }),
    setMilestones: (request) => setTopicMilestones(room, (each) => room.run(each, "housekeeping"), request),
    log: async (key, limit) => (await room.read(own.readRewinds(key, limit))).map(rewindEntry),
    close: () => room.close(),
  });
}

/** `progress` reads with or without locks. */
async function planned(room: Room, run: Run, request: RewindRequest, progress: Cold): Promise<Moves | RewindRefusal> {
  const { group, target, expected } = request;
  const situation = await situationOf(room, run, request, progress);
  if (situation.partitions.length === 0) return { refused: "unknown group", group };
  const moved = (expected ?? []).flatMap(({ partition, from }) => {
    const at = situation.partitions.find((each) => each.partition === partition)?.nextId ?? "0";
    return at === from ? [] : [{ partition, at }];
  });
  if (moved.length > 0) return { refused: "moved", partitions: moved };
  const goals = await goalsOf(run, request, situation);
  if ("refused" in goals) return goals;

  const gone = new Set<number>();
  const partitions: Moves["partitions"][number][] = [];
  for (const { partition, nextId, round } of situation.partitions) {
    const goal = goals.get(partition);
    if (goal === undefined) continue;
    // Includes the current month, whose read messages cannot come again.
    const missing = situation.dropped.filter(
      (month) => compareIds(goal, nextId) < 0 && month >= queueMonth(goal) && compareIds(firstIdOf(month), nextId) < 0,
    );
    for (const month of missing) gone.add(month);
    const first = situation.months.find((month) => month >= queueMonth(goal));
    const isOver = missing.length > 0 && first !== undefined && first > queueMonth(goal);
    const to = isOver ? firstIdOf(first) : goal;
    if (to !== nextId) partitions.push({ partition, from: nextId, to, round });
  }
  const droppedMonths = [...gone].sort((left, right) => left - right);
  const mayBegin = request.overDroppedMonths || target.kind === "start";
  if (droppedMonths.length > 0 && !mayBegin) return { refused: "dropped months", months: droppedMonths };
  const { months, lastRewind } = situation;
  return { partitions, droppedMonths, months, lastRewind: lastRewind[0]?.rewind ?? 0 };
}

async function situationOf(room: Room, run: Run, request: RewindRequest, progress: Cold): Promise<Situation> {
  const { topic, partitions } = request;
  // First: under locks, later reads are current.
  const { rows } = await run(progress);
  const places = rows
    .map((row) => ({
      partition: integer(row, "partitionno"),
      nextId: text(row, "nextid"),
      round: integer(row, "round"),
    }))
    .filter(({ partition }) => partitions === undefined || partitions.includes(partition));
  const lastIds = lastIdsIn((await run(readCounters([topic]))).rows);
  const dropped = (await run(droppedMonths(topic))).rows.map((row) => integer(row, "month"));
  const tables = await room.months(topic, run);
  const entries = (await run(own.readRewinds(request, A_REWIND))).rows.map(rewindEntry);
  return {
    partitions: places.sort((left, right) => left.partition - right.partition),
    ends: new Map([...lastIds].map(([partition, lastId]) => [partition, String(BigInt(lastId) + 1n)])),
    months: tables.filter((month) => !dropped.includes(month)),
    dropped,
    lastRewind: entries.filter(({ rewind }) => rewind === entries[0]?.rewind),
  };
}

async function goalsOf(
  run: Run,
  request: RewindRequest,
  situation: Situation,
): Promise<ReadonlyMap<number, string> | RewindRefusal> {
  const { target, topic } = request;
  const { partitions, ends, months, lastRewind } = situation;
  const each = (goal: (partition: number, nextId: string) => string): ReadonlyMap<number, string> =>
    new Map(partitions.map(({ partition, nextId }) => [partition, goal(partition, nextId)]));
  const endOf = (partition: number): string => ends.get(partition) ?? "0";

  switch (target.kind) {
    case "start":
      return each(() => (months[0] === undefined ? "0" : firstIdOf(months[0])));
    case "end":
      return each(endOf);
    case "time":
      return each((partition) => (compareIds(target.id, endOf(partition)) > 0 ? endOf(partition) : target.id));
    case "id": {
      // A later goal would skip future messages.
      const last = [...ends.values()].sort(compareIds).at(-1) ?? "0";
      if (compareIds(target.id, last) > 0) return { refused: "ahead", lastId: String(BigInt(last) - 1n) };
      return each((partition) => (compareIds(target.id, endOf(partition)) > 0 ? endOf(partition) : target.id));
    }
    case "group": {
      const { rows } = await run(readProgress({ topic, group: target.group }));
      if (rows.length === 0) return { refused: "unknown group", group: target.group };
      return new Map(rows.map((row) => [integer(row, "partitionno"), text(row, "nextid")]));
    }
    case "back": {
      const goals = new Map<number, string>();
      for (const { partition, nextId } of partitions) {
        goals.set(partition, await back(run, { topic, partition, nextId, months, places: target.messages }));
      }
      return goals;
    }
    case "undo": {
      if (lastRewind.length === 0 || lastRewind.some(({ undoOf }) => undoOf !== null)) {
        return { refused: "nothing to undo" };
      }
      const before = new Map(lastRewind.map((entry) => [entry.partition, entry]));
      const goals = partitions.flatMap(({ partition, nextId }): [number, string][] => {
        const entry = before.get(partition);
        if (entry === undefined) return [];
        // Already replayed messages are neither skipped nor repeated.
        const wasBack = compareIds(entry.to, entry.from) < 0;
        return [[partition, wasBack && compareIds(nextId, entry.from) > 0 ? nextId : entry.from]];
      });
      return new Map(goals);
    }
  }
}

/** Across months; the first message when there are fewer. */
async function back(
  run: Run,
  at: { topic: string; partition: number; nextId: string; months: readonly number[]; places: number },
): Promise<string> {
  const { topic, partition, nextId } = at;
  let left = at.places;
  let first = nextId;
  for (const month of at.months.toReversed()) {
    if (month > queueMonth(nextId)) continue;
    const found = await messageBack(run, { topic, month, partition }, { id: nextId, places: left });
    if ("id" in found) return found.id;
    left -= found.messages;
    if (found.messages > 0) first = firstIdOf(month);
  }
  return first;
}

async function count(
  run: Run,
  key: GroupKey,
  { partition, from, to, months }: RewoundPartition & Pick<Moves, "months">,
): Promise<Pick<CountedPartition, "consumed" | "messages">> {
  const [low, high] = compareIds(from, to) < 0 ? [from, to] : [to, from];
  const toId = String(BigInt(high) - 1n);
  let messages = 0;
  let consumed = 0;
  for (const month of months) {
    if (month < queueMonth(low) || month > queueMonth(toId)) continue;
    const stretch = { topic: key.topic, month, partition };
    const passed = month > queueMonth(low) ? 0 : await messagesBefore(run, stretch, low);
    const all = (await messagesBefore(run, stretch, high)) - passed;
    if (all === 0) continue;
    const range = { month, partition, fromId: low, toId };
    const done = integer((await run(own.countConsumed(key, range))).rows[0] ?? {}, "n");
    messages += all;
    // Batches of several rounds overlap.
    consumed += Math.min(all, done);
  }
  return { messages, consumed };
}

async function move(
  run: Run,
  request: RewindRequest,
  { partitions, droppedMonths, lastRewind }: Moves,
): Promise<RewindDone> {
  const { author, reason, target } = request;
  const rewind = lastRewind + 1;
  const undoOf = target.kind === "undo" ? lastRewind : null;
  let setAside = 0;
  let restored = 0;
  for (const { partition, from, to, round: before } of partitions) {
    const { affected } = await run(own.movePartition(request, { partition, from, to, month: queueMonth(to) }));
    if (affected !== 1) throw new Error(`partition ${partition} has moved although it is locked`);
    const round = before + 1;
    await run(own.insertRewind(request, { rewind, partition, round, from, to, undoOf, author, reason }));
    await run(own.forgetReplayed(request, partition, from));
    restored += (await run(own.restore(request, partition, to))).affected;
    setAside += (await run(own.setAside(request, partition, to))).affected;
  }
  return {
    rewind: partitions.length === 0 ? undefined : rewind,
    partitions: partitions.map(({ partition, from, to }) => ({ partition, from, to })),
    droppedMonths,
    setAside,
    restored,
  };
}

function rewindEntry(row: Row): RewindEntry {
  const undoOf = textOrNull(row, "undo_of");
  return {
    rewind: integer(row, "rewind_no"),
    partition: integer(row, "partition_no"),
    round: integer(row, "round"),
    from: text(row, "from_id"),
    to: text(row, "to_id"),
    undoOf: undoOf === null ? null : Number(undoOf),
    author: text(row, "author"),
    reason: text(row, "reason"),
    at: text(row, "at"),
  };
}
