/**
 * Counting messages without a walk over all of them: every 5,000th message of a partition in a
 * month is a milestone. Ids have the order of the commits, so whoever sees a message sees all
 * before it in its partition; and messages go by whole months only. So the n-th milestone of a
 * month is its message n x 5,000 for ever, whoever sets it, and however many do. Consumers set them
 * (queue/retention/housekeeping.ts); what is behind the last one is walked.
 */
import { setImmediate } from "node:timers/promises";
import { firstIdOf, monthAfter, monthOf } from "../../../message/queue-id.ts";
import type { RewindStore } from "../../../queue/rewinding/store.ts";
import { compareIds } from "../../../runtime/compare-ids.ts";
import type { QueryResult, Statement } from "../../../transactions/executor.ts";
import { integer, text } from "../rows.ts";
import { monthsOfTables } from "./names.ts";
import type { QueueStatements } from "./statements.ts";

/** To find the next one and set it takes 1.6 ms on PostgreSQL 15, 8 ms on MariaDB 10.11. */
const EVERY = 5_000;
const ALL = 2 ** 31 - 1;

export type Run = (statement: Statement) => Promise<QueryResult>;

/** The messages of one partition in one month. */
export interface Stretch {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
}

type Parts = Pick<QueueStatements, "rewind">;

/** What `RewindStore.setMilestones` promises. */
export async function setTopicMilestones(
  parts: Pick<QueueStatements, "consume" | "rewind" | "topics">,
  run: Run,
  { topic, fromMonth, isOver }: Parameters<RewindStore["setMilestones"]>[0],
): Promise<number> {
  const readMonths = async () => monthsOfTables(topic, (await run(parts.topics.monthTables(topic))).rows);
  const months = await readMonths();
  const counters = (await run(parts.consume.readCounters({ topic, group: "" }))).rows;
  const [now = {}] = (await run(parts.topics.now())).rows;
  const current = monthOf(Number(text(now, "nowms")));
  // An append that began in the month before may be committed in this one.
  const recent = months.findLast((month) => month < current) ?? 0;
  for (const month of months.filter((each) => each >= (fromMonth ?? recent))) {
    try {
      for (const row of counters) {
        const stretch = { topic, month, partition: integer(row, "partitionno") };
        if (!(await setMilestones(parts, run, stretch, isOver))) return month;
      }
    } catch (error) {
      const isDropped = !(await readMonths()).includes(month);
      if (!isDropped) throw error;
    }
  }
  return recent;
}

/** How many of the stretch are before this id. */
export async function messagesBefore(parts: Parts, run: Run, stretch: Stretch, id: string): Promise<number> {
  return await countOn(parts, run, stretch, {
    passed: await passedMilestones(parts, run, stretch, { beforeId: id }),
    id,
  });
}

/** The message so many places before this id; where the stretch has fewer, how many it has. */
export async function messageBack(
  parts: Parts,
  run: Run,
  stretch: Stretch,
  { id, places }: { readonly id: string; readonly places: number },
): Promise<{ readonly id: string } | { readonly messages: number }> {
  const { topic, month, partition } = stretch;
  const passed = await passedMilestones(parts, run, stretch, { beforeId: id });
  if (places <= EVERY || passed.milestones === 0) {
    const [row] = (await run(parts.rewind.placesBefore(topic, { month, partition, id, places }))).rows;
    if (row !== undefined) return { id: text(row, "id") };
  }
  const messages = await countOn(parts, run, stretch, { passed, id });
  if (messages < places) return { messages };
  const before = messages - places;
  const near = await passedMilestones(parts, run, stretch, { limit: Math.floor(before / EVERY) });
  const ahead = { month, partition, id: near.id, places: before - near.milestones * EVERY + 1 };
  const [row = {}] = (await run(parts.rewind.placesBehind(topic, ahead))).rows;
  return { id: text(row, "id") };
}

/** Those up to a milestone, and those from there to before this id. */
async function countOn(
  { rewind }: Parts,
  run: Run,
  { topic, month, partition }: Stretch,
  { passed, id }: { readonly passed: Passed; readonly id: string },
): Promise<number> {
  const range = { month, partition, fromId: String(BigInt(passed.id) + 1n), toId: String(BigInt(id) - 1n) };
  const [row = {}] = (await run(rewind.countMessages(topic, range))).rows;
  return passed.milestones * EVERY + integer(row, "n");
}

/**
 * Sets those that are missing, until it `isOver` or somebody else is at it; false: some may be
 * missing yet.
 */
async function setMilestones(parts: Parts, run: Run, stretch: Stretch, isOver: () => boolean): Promise<boolean> {
  const { topic, month, partition } = stretch;
  let { id } = await passedMilestones(parts, run, stretch, {});
  while (!isOver()) {
    // SQLite answers within the call: without a pause no timer would run, nor a heartbeat.
    await setImmediate();
    // A SELECT of its own: an INSERT with it would lock what it reads on MySQL, and appends wait.
    const [row] = (await run(parts.rewind.placesBehind(topic, { month, partition, id, places: EVERY }))).rows;
    if (row === undefined) return true;
    id = text(row, "id");
    const { affected } = await run(parts.rewind.insertMilestone(topic, { partition, id }));
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
  { rewind }: Parts,
  run: Run,
  { topic, month, partition }: Stretch,
  { beforeId, limit = ALL }: { readonly beforeId?: string; readonly limit?: number },
): Promise<Passed> {
  const endId = firstIdOf(monthAfter(month));
  const isWithin = beforeId !== undefined && compareIds(beforeId, endId) < 0;
  const range = { month, partition, beforeId: isWithin ? beforeId : endId, limit };
  const [row = {}] = (await run(rewind.passedMilestones(topic, range))).rows;
  const milestones = integer(row, "n");
  return { milestones, id: milestones === 0 ? "0" : text(row, "id") };
}
