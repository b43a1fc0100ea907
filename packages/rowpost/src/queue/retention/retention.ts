import { randomBytes } from "node:crypto";
import { MonthNotDroppedError } from "../../message/queue-errors.ts";
import { monthOf } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError, describeError, UnknownTopicError } from "../../runtime/errors.ts";
import { said } from "../rewinding/rewind.ts";
import type { TopicStore } from "../store.ts";
import { checkTopic } from "../topics/names.ts";
import { archiveMonth } from "./archive.ts";
import type { Retention } from "./dropping.ts";
import type { DropBegin, DropRefusal, DropRequest, MonthCounts, NeedingGroup } from "./requests.ts";

/** Options of `queue.dropMonth`. */
export interface DropMonthOptions {
  /** The topic. */
  readonly topic: string;
  /** Month such as 202611; it must be over. */
  readonly month: number;
  /** Author, kept in the log. */
  readonly author: string;
  /** Reason, kept in the log. */
  readonly reason: string;
  /** Drops it even when a group still needs it; that group loses its unread messages. */
  readonly force?: boolean | undefined;
  /** Folder to archive the month to first, as gzipped NDJSON. */
  readonly archiveTo?: string | undefined;
  /** Called with the rows written so far. */
  readonly onProgress?: ((progress: { readonly archivedRows: number }) => void) | undefined;
}

/** A month that was dropped. */
export interface MonthDropped extends MonthCounts {
  /** The topic. */
  readonly topic: string;
  /** Month such as 202611. */
  readonly month: number;
  /** Redeliveries and dead letters deleted with it. */
  readonly redeliveries: number;
  /** Files of its archive, if any. */
  readonly archive: readonly string[];
}

/** Outcome for a month past its topic's retention. */
export interface RetentionOutcome {
  /** The topic. */
  readonly topic: string;
  /** Month such as 202611. */
  readonly month: number;
  /** Undefined when it still exists. */
  readonly dropped: MonthDropped | undefined;
  /** Why it still exists. */
  readonly problem: string | undefined;
}

const KINDS: OptionKinds<DropMonthOptions> = {
  topic: "any",
  month: "any",
  author: "any",
  reason: "any",
  force: "boolean",
  archiveTo: "string",
  onProgress: "function",
};

export async function dropMonth(store: Retention, options: DropMonthOptions): Promise<MonthDropped> {
  const request = checked(options);
  const { topic, month } = request;
  const begun = await store.begin(request);
  if ("refused" in begun) throw refusal(request, begun);
  const kept = begun.isThere ? await lookAndKeep(store, request, options) : NOTHING;
  const refused = await store.drop(topic, month);
  if (refused !== undefined) {
    await (refused.isWhole ? store.takeBack(request) : store.release(request));
    throw dropRefusal(request, refused);
  }
  const { redeliveries } = await store.finish(request);
  return { topic, month, ...kept, redeliveries };
}

/** Counted and archived by a killed call; the log has it. */
const NOTHING = { messages: 0, records: 0, archive: [] as readonly string[] };

/** After a failure the month is as before. */
async function lookAndKeep(
  store: Retention,
  request: DropRequest,
  { archiveTo, onProgress }: DropMonthOptions,
): Promise<MonthCounts & Pick<MonthDropped, "archive">> {
  const { topic, month } = request;
  try {
    if (archiveTo === undefined) {
      const counts = await store.count(topic, month);
      await stillOurs(store, request, counts);
      return { ...counts, archive: [] };
    }
    const onRows = async (archivedRows: number): Promise<void> => {
      onProgress?.({ archivedRows });
      await stillOurs(store, request);
    };
    const { files, counts } = await archiveMonth(store, { ...request, folder: archiveTo, onRows });
    await stillOurs(store, request, counts, files.join(" "));
    return { ...counts, archive: files };
  } catch (error) {
    await store.takeBack(request);
    throw error;
  }
}

async function stillOurs(
  store: Retention,
  request: DropRequest,
  counts?: MonthCounts,
  archive?: string,
): Promise<void> {
  if (await store.touch(request, counts, archive)) return;
  throw refusal(request, { refused: "busy" });
}

function refusal({ topic, month }: DropRequest, begun: Exclude<DropBegin, { readonly begun: true }>): Error {
  const what = `topic ${topic}: ${month} was not dropped`;
  switch (begun.refused) {
    case "needed":
      return new MonthNotDroppedError(
        "NEEDED",
        `${what}: ${begun.groups.map(needText).join("; ")}. Let them read on, delete those that nobody reads with any more (queue.deleteGroup), or drop it with force`,
        true,
      );
    case "not over":
      return new MonthNotDroppedError("NOT_OVER", `${what}: it is not over; it is ${begun.currentMonth}`, false);
    case "busy":
      return new MonthNotDroppedError("BUSY", `${what}: another call is dropping it; run this one again later`, true);
    case "no such month":
      return new MonthNotDroppedError("NO_SUCH_MONTH", `${what}: it has no tables`, false);
    case "gone":
      return new MonthNotDroppedError("GONE", `${what}: it was dropped before`, false);
  }
}

function dropRefusal({ topic, month }: DropRequest, { refused, isWhole, cause }: DropRefusal): Error {
  const [which, left] = isWhole
    ? ["the tables", "they are as before"]
    : ["the records", "its messages are gone already, and the next run goes on"];
  const said = describeError(cause);
  return refused === "in use"
    ? new MonthNotDroppedError(
        "IN_USE",
        `topic ${topic}: ${which} of ${month} are in use by a long transaction; ${left} (${said})`,
        true,
        cause,
      )
    : new MonthNotDroppedError(
        "REFUSED",
        `topic ${topic}: the database refuses to drop ${which} of ${month}; ${left} (${said})`,
        false,
        cause,
      );
}

function needText({ group, partitions, waiting }: NeedingGroup): string {
  const unread = partitions.map(({ partition, nextId }) => `partition ${partition} from id ${nextId} on`).join(", ");
  const parts = [
    ...(partitions.length > 0 ? [`has unread messages (${unread})`] : []),
    ...(waiting > 0 ? [`gets ${waiting} messages of it again`] : []),
  ];
  return `group ${group} ${parts.join(" and ")}`;
}

function checked(options: DropMonthOptions): DropRequest {
  checkOptions("dropMonth", options, KINDS);
  const { month, force } = options;
  if (!(Number.isInteger(month) && month >= 202001 && month <= 208912 && month % 100 >= 1 && month % 100 <= 12)) {
    throw new ConfigurationError(`dropMonth: month is ${String(month)}; it must be a year and a month, such as 202611`);
  }
  return {
    topic: checkTopic(options.topic),
    month,
    owner: randomBytes(12).toString("hex"),
    author: said("author", options.author, 64),
    reason: said("reason", options.reason, 255),
    force: force === true,
  };
}

export interface RetentionParts {
  readonly store: Retention;
  readonly topics: Pick<TopicStore, "currentMonth" | "list" | "months">;
  /** The earlier of both clocks counts. */
  readonly nowMs: () => number;
}

export async function applyRetention(
  { store, topics, nowMs }: RetentionParts,
  options: { readonly topic?: string | undefined; readonly archiveTo?: string | undefined } = {},
): Promise<RetentionOutcome[]> {
  checkOptions("applyRetention", options, { topic: "any", archiveTo: "string" });
  if (options.topic !== undefined) checkTopic(options.topic);
  const outcomes: RetentionOutcome[] = [];
  // A database clock a year ahead must not cost a year of messages.
  const current = Math.min(await topics.currentMonth(), monthOf(nowMs()));
  const all = await topics.list(options.topic);
  if (options.topic !== undefined && all.length === 0) throw new UnknownTopicError(options.topic);
  for (const { topic, retentionMonths } of all) {
    if (retentionMonths === null) continue;
    // A month stays until its last message is that old.
    const last = monthsBefore(current, retentionMonths);
    for (const month of (await topics.months(topic)).filter((each) => each < last)) {
      const reason = `retention of ${retentionMonths} months`;
      try {
        const archiveTo = options.archiveTo;
        const dropped = await dropMonth(store, { topic, month, author: "retention", reason, archiveTo });
        outcomes.push({ topic, month, dropped, problem: undefined });
      } catch (error) {
        outcomes.push({ topic, month, dropped: undefined, problem: describeError(error) });
      }
    }
  }
  return outcomes;
}

function monthsBefore(month: number, count: number): number {
  const months = Math.floor(month / 100) * 12 + (month % 100) - 1 - count;
  return Math.floor(months / 12) * 100 + (months % 12) + 1;
}
