/**
 * Counting messages without a walk over all of them: every 5,000th message of a partition in a
 * month is a milestone. Ids have the order of the commits, so whoever sees a message sees all
 * before it in its partition; and messages go by whole months only. So the n-th milestone of a
 * month is its message n x 5,000 for ever, whoever sets it, and however many do. Consumers set them
 * (queue/retention/housekeeping.ts); what is behind the last one is walked.
 */
import { setImmediate } from "node:timers/promises";
import { firstIdOf, monthAfter, monthOf } from "../../../message/queue-id.ts";
import { compareIds } from "../../../runtime/compare-ids.ts";
import type { QueryResult, Statement } from "../../../transactions/executor.ts";
import { integer, text } from "../rows.ts";
import { monthsOfTables } from "./names.ts";
import type { QueueStatements } from "./statements.ts";

/** To walk so many takes 2 ms on PostgreSQL 15, 4 ms on MariaDB 10.11. */
export const EVERY = 5_000;
const ALL = 2 ** 31 - 1;

export type Run = (statement: Statement) => Promise<QueryResult>;

/** The messages of one partition in one month. */
export interface Stretch {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
}

type Parts = Pick<QueueStatements, "rewind">;

interface TopicRequest {
  readonly topic: string;
  readonly fromMonth: number | undefined;
  readonly isOver: () => boolean;
  readonly isTableMissing: (error: unknown) => boolean;
}

/** What `RewindStore.setMilestones` promises. */
export async function setTopicMilestones(
  parts: Pick<QueueStatements, "consume" | "rewind" | "topics">,
  run: Run,
  { topic, fromMonth, isOver, isTableMissing }: TopicRequest,
): Promise<number> {
  const readMonths = async () => monthsOfTables(topic, (await run(parts.topics.monthTables(topic))).rows);
  const months = await readMonths();
  const counters = (await run(parts.consume.readCounters({ topic, group: "" }))).rows;
  const [now = {}] = (await run(parts.topics.now())).rows;
  const current = monthOf(Number(text(now, "nowms")));
  // An append that began in the month before may be committed in this one.
  const recent = months.findLast((month) => month < current) ?? 0;
  for (const month of months.filter((each) => each >= (fromMonth ?? recent))) {
    for (const row of counters) {
      const stretch = { topic, month, partition: integer(row, "partitionno") };
      try {
        if (!(await setMilestones(parts, run, stretch, isOver))) return month;
      } catch (error) {
        if (!isTableMissing(error) || (await readMonths()).includes(month)) throw error;
        break;
      }
    }
  }
  return recent;
}

/** How many of the stretch are before this id. */
export async function messagesBefore(parts: Parts, run: Run, stretch: Stretch, id: string): Promise<number> {
  const { topic, month, partition } = stretch;
  const passed = await passedMilestones(parts, run, stretch, { beforeId: id });
  const range = { month, partition, fromId: String(BigInt(passed.id) + 1n), toId: String(BigInt(id) - 1n) };
  const [row = {}] = (await run(parts.rewind.countMessages(topic, range))).rows;
  return passed.milestones * EVERY + integer(row, "n");
}

/** Id of the one that has so many of the stretch before it; it has to be there. */
export async function messageAt(parts: Parts, run: Run, stretch: Stretch, before: number): Promise<string> {
  const { topic, month, partition } = stretch;
  const wanted = Math.floor(before / EVERY);
  const passed =
    wanted === 0 ? { milestones: 0, id: "0" } : await passedMilestones(parts, run, stretch, { limit: wanted });
  const places = before - passed.milestones * EVERY + 1;
  const [row = {}] = (await run(parts.rewind.placesBehind(topic, { month, partition, id: passed.id, places }))).rows;
  return text(row, "id");
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

/** Of the month's, in their order; the id of the last of them, `0` when there is none. */
async function passedMilestones(
  { rewind }: Parts,
  run: Run,
  { topic, month, partition }: Stretch,
  { beforeId, limit = ALL }: { readonly beforeId?: string; readonly limit?: number },
): Promise<{ readonly milestones: number; readonly id: string }> {
  const endId = firstIdOf(monthAfter(month));
  const isWithin = beforeId !== undefined && compareIds(beforeId, endId) < 0;
  const range = { month, partition, beforeId: isWithin ? beforeId : endId, limit };
  const [row = {}] = (await run(rewind.passedMilestones(topic, range))).rows;
  const milestones = integer(row, "n");
  return { milestones, id: milestones === 0 ? "0" : text(row, "id") };
}
