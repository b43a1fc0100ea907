/**
 * Every 5,000th message of a partition in a month is a milestone, which makes counting fast. Ids
 * are in commit order and months are deleted whole, so the n-th milestone is always message n x
 * 5,000, no matter who sets it. Consumers set them (queue/retention/housekeeping.ts); messages
 * after the last one are walked.
 */
import { setImmediate } from "node:timers/promises";
import type { Room, Run } from "../../databases/sql/queue/room.ts";
import { lastIdsIn } from "../../databases/sql/queue/values.ts";
import { integer, text } from "../../databases/sql/rows.ts";
import { firstIdOf, monthAfter, monthOf } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { readCounters } from "../consuming/statements.ts";
import {
  countMessages,
  insertMilestone,
  placesBefore,
  placesBehind,
  passedMilestones as readPassed,
  type Stretch,
} from "./statements.ts";

/** One takes 1.6 ms on PostgreSQL 15, 8 ms on MariaDB 10.11. */
const EVERY = 5_000;
const ALL = 2 ** 31 - 1;

export interface MilestonesRequest {
  readonly topic: string;
  readonly fromMonth: number | undefined;
  readonly isOver: () => boolean;
}

export async function setTopicMilestones(
  { months, nowMs }: Pick<Room, "months" | "nowMs">,
  run: Run,
  { topic, fromMonth, isOver }: MilestonesRequest,
): Promise<number> {
  const there = await months(topic, run);
  const lastIds = lastIdsIn((await run(readCounters([topic]))).rows);
  const current = monthOf(await nowMs(run));
  // An append begun last month may commit in this one.
  const recent = there.findLast((month) => month < current) ?? 0;
  for (const month of there.filter((each) => each >= (fromMonth ?? recent))) {
    try {
      for (const partition of lastIds.keys()) {
        if (!(await setMilestones(run, { topic, month, partition }, isOver))) return month;
      }
    } catch (error) {
      const isDropped = !(await months(topic, run)).includes(month);
      if (!isDropped) throw error;
    }
  }
  return recent;
}

export async function messagesBefore(run: Run, stretch: Stretch, id: string): Promise<number> {
  return await countOn(run, stretch, {
    passed: await passedMilestones(run, stretch, { beforeId: id }),
    id,
  });
}

/** Or the number of messages, when there are fewer. */
export async function messageBack(
  run: Run,
  stretch: Stretch,
  { id, places }: { readonly id: string; readonly places: number },
): Promise<{ readonly id: string } | { readonly messages: number }> {
  const passed = await passedMilestones(run, stretch, { beforeId: id });
  if (places <= EVERY || passed.milestones === 0) {
    const [row] = (await run(placesBefore({ ...stretch, id, places }))).rows;
    if (row !== undefined) return { id: text(row, "id") };
  }
  const messages = await countOn(run, stretch, { passed, id });
  if (messages < places) return { messages };
  const before = messages - places;
  const near = await passedMilestones(run, stretch, { limit: Math.floor(before / EVERY) });
  const ahead = { ...stretch, id: near.id, places: before - near.milestones * EVERY + 1 };
  const [row = {}] = (await run(placesBehind(ahead))).rows;
  return { id: text(row, "id") };
}

async function countOn(
  run: Run,
  { topic, month, partition }: Stretch,
  { passed, id }: { readonly passed: Passed; readonly id: string },
): Promise<number> {
  const range = { month, partition, fromId: String(BigInt(passed.id) + 1n), toId: String(BigInt(id) - 1n) };
  const [row = {}] = (await run(countMessages(topic, range))).rows;
  return passed.milestones * EVERY + integer(row, "n");
}

/** Until it `isOver` or another process does it. Returns false when some may be missing. */
async function setMilestones(run: Run, stretch: Stretch, isOver: () => boolean): Promise<boolean> {
  let { id } = await passedMilestones(run, stretch, {});
  while (!isOver()) {
    // SQLite answers within the call and would block all timers.
    await setImmediate();
    // Inside the INSERT, MySQL would lock the rows read and block appends.
    const [row] = (await run(placesBehind({ ...stretch, id, places: EVERY }))).rows;
    if (row === undefined) return true;
    id = text(row, "id");
    const { affected } = await run(insertMilestone(stretch.topic, stretch.partition, id));
    if (affected === 0) return false;
  }
  return false;
}

/** The id is that of the last one, or `0`. */
interface Passed {
  readonly milestones: number;
  readonly id: string;
}

/** Milestones of the month, in order. */
async function passedMilestones(
  run: Run,
  stretch: Stretch,
  { beforeId, limit = ALL }: { readonly beforeId?: string; readonly limit?: number },
): Promise<Passed> {
  const endId = firstIdOf(monthAfter(stretch.month));
  const isWithin = beforeId !== undefined && compareIds(beforeId, endId) < 0;
  const range = { beforeId: isWithin ? beforeId : endId, limit };
  const [row = {}] = (await run(readPassed(stretch, range))).rows;
  const milestones = integer(row, "n");
  return { milestones, id: milestones === 0 ? "0" : text(row, "id") };
}
