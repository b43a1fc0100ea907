/**
 * Counting messages without a walk over all of them: every 5,000th message of a partition in a
 * month is a milestone. Ids have the order of the commits, so whoever sees a message sees all
 * before it in its partition; and messages go by whole months only. So the n-th milestone of a
 * month is its message n x 5,000 for ever, whoever sets it, and however many do. Consumers set them
 * (queue/retention/housekeeping.ts); what is behind the last one is walked.
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

/** To find the next one and set it takes 1.6 ms on PostgreSQL 15, 8 ms on MariaDB 10.11. */
const EVERY = 5_000;
const ALL = 2 ** 31 - 1;

export interface MilestonesRequest {
  readonly topic: string;
  readonly fromMonth: number | undefined;
  readonly isOver: () => boolean;
}

/** What `Rewinding.setMilestones` promises. */
export async function setTopicMilestones(
  { months, nowMs }: Pick<Room, "months" | "nowMs">,
  run: Run,
  { topic, fromMonth, isOver }: MilestonesRequest,
): Promise<number> {
  const there = await months(topic, run);
  const lastIds = lastIdsIn((await run(readCounters([topic]))).rows);
  const current = monthOf(await nowMs(run));
  // An append that began in the month before may be committed in this one.
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

/** How many of the stretch are before this id. */
export async function messagesBefore(run: Run, stretch: Stretch, id: string): Promise<number> {
  return await countOn(run, stretch, {
    passed: await passedMilestones(run, stretch, { beforeId: id }),
    id,
  });
}

/** The message so many places before this id; where the stretch has fewer, how many it has. */
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

/** Those up to a milestone, and those from there to before this id. */
async function countOn(
  run: Run,
  { topic, month, partition }: Stretch,
  { passed, id }: { readonly passed: Passed; readonly id: string },
): Promise<number> {
  const range = { month, partition, fromId: String(BigInt(passed.id) + 1n), toId: String(BigInt(id) - 1n) };
  const [row = {}] = (await run(countMessages(topic, range))).rows;
  return passed.milestones * EVERY + integer(row, "n");
}

/**
 * Sets those that are missing, until it `isOver` or somebody else is at it; false: some may be
 * missing yet.
 */
async function setMilestones(run: Run, stretch: Stretch, isOver: () => boolean): Promise<boolean> {
  let { id } = await passedMilestones(run, stretch, {});
  while (!isOver()) {
    // SQLite answers within the call: without a pause no timer would run, nor a heartbeat.
    await setImmediate();
    // A SELECT of its own: an INSERT with it would lock what it reads on MySQL, and appends wait.
    const [row] = (await run(placesBehind({ ...stretch, id, places: EVERY }))).rows;
    if (row === undefined) return true;
    id = text(row, "id");
    const { affected } = await run(insertMilestone(stretch.topic, stretch.partition, id));
    if (affected === 0) return false;
  }
  return false;
}

/** How many, and the id of the last of them, `0` when there is none. */
interface Passed {
  readonly milestones: number;
  readonly id: string;
}

/** Of the month's, in their order. */
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
