/**
 * Searching on any SQL database: month by month, the newest first, in steps that look at so many
 * messages at most, until the page is full, everything was searched, or the time is over.
 */
import {
  firstIdOf,
  MOST_IN_A_RECORD,
  monthOf,
  monthsBetween,
  partitionOfId,
  queueMonth,
} from "../../../message/queue-id.ts";
import type {
  ConsumptionEntry,
  DroppedMonth,
  FoundMessage,
  GroupPlace,
  MessageDetail,
  SearchRequest,
  SearchResult,
  SearchStore,
} from "../../../queue/searching/store.ts";
import { compareIds } from "../../../runtime/compare-ids.ts";
import type { Statement } from "../../../transactions/executor.ts";
import { integer, type Row, text, textOrNull } from "../rows.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { ConsumptionParts } from "./consumption-store.ts";
import { monthsOfTables } from "./names.ts";
import { isBehind, RESULTS } from "./values.ts";

/** Messages of a step along the primary key: the first is small, as most pages are full soon. */
const FIRST_STEP = 200;
const LONGEST_STEP = 4_000;
/** Messages with one key that are looked at in a step. */
const KEY_STEP = 200;
const STATEMENT_TIMEOUT_MS = 10_000;

type SearchParts = Pick<ConsumptionParts, "connect" | "isTableMissing" | "sharedSession" | "statements">;
type Read = (statement: Statement) => Promise<readonly Row[]>;

export function createSearchStore(parts: SearchParts): SearchStore {
  const slots = createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    connect: () => parts.connect({ purpose: "relay", statementTimeoutMs: STATEMENT_TIMEOUT_MS }),
  });
  const read: Read = async (statement) => (await slots.retry("scan", (session) => session.run(statement))).rows;
  return {
    search: (request) => search(parts, read, request),
    detail: (topic, id) => detail(parts, read, topic, id),
    close: () => slots.close(),
  };
}

/** A dropped month counts from when somebody began to drop it. */
function droppedMonth(row: Row): DroppedMonth {
  return {
    month: integer(row, "month"),
    messages: integer(row, "messages"),
    records: integer(row, "records"),
    redeliveries: integer(row, "redeliveries"),
    author: text(row, "author"),
    reason: text(row, "reason"),
    droppedAt: text(row, "dropped_at"),
    archive: textOrNull(row, "archive"),
  };
}

interface RangeMap {
  /** The newest first. */
  readonly months: readonly number[];
  readonly dropped: readonly DroppedMonth[];
  readonly absent: readonly number[];
}

/** What there is of a topic in a range. */
async function mapOf(
  { statements }: SearchParts,
  read: Read,
  { topic, fromId, toId }: SearchRequest,
  created: string,
): Promise<RangeMap> {
  const low = Math.max(queueMonth(fromId), 1);
  const high = queueMonth(toId);
  const within = (month: number): boolean => month >= low && month <= high;
  const tables = monthsOfTables(topic, await read(statements.topics.monthTables(topic)));
  const dropped = (await read(statements.search.droppedMonths(topic))).map(droppedMonth);
  const gone = new Set(dropped.map(({ month }) => month));
  const months = tables.filter((month) => within(month) && !gone.has(month));
  const first = Math.min(monthOf(Date.parse(created)), ...tables, ...gone);
  const last = Math.max(first, ...tables);
  return {
    months: months.toSorted((left, right) => right - left),
    dropped: dropped.filter(({ month }) => within(month)),
    absent: monthsBetween(first, last).filter((month) => within(month) && !gone.has(month) && !tables.includes(month)),
  };
}

async function search(parts: SearchParts, read: Read, request: SearchRequest): Promise<SearchResult | undefined> {
  const { topic, limit, timeLimitMs } = request;
  const untilMs = performance.now() + timeLimitMs;
  const [settings] = await read(parts.statements.search.readTopic(topic));
  if (settings === undefined) return undefined;
  const map = await mapOf(parts, read, request, text(settings, "created"));
  const step = stepper(parts, read, request, integer(settings, "partitions"));
  const messages: FoundMessage[] = [];
  const searched: number[] = [];
  const absent = [...map.absent];
  let rows = 0;
  const answer = (stopped: SearchResult["stopped"], nextId: string | undefined): SearchResult => ({
    ...{ messages, rows, stopped, nextId, months: searched, dropped: map.dropped },
    absent: absent.toSorted((left, right) => left - right),
  });
  for (const month of map.months) {
    let toId: string | undefined = request.toId;
    for (let size = FIRST_STEP; toId !== undefined; size = LONGEST_STEP) {
      const seen = await step(month, toId, size);
      if (seen === undefined) {
        // Dropped since the months were read.
        absent.push(month);
        break;
      }
      if (searched.at(-1) !== month) searched.push(month);
      for (const message of seen.messages) {
        rows += 1;
        if (request.matches(message)) messages.push(message);
        if (messages.length >= limit) return answer("limit", message.id);
      }
      toId = seen.toId;
      if (performance.now() < untilMs || (toId === undefined && month === map.months.at(-1))) continue;
      return answer("time", toId === undefined ? firstIdOf(month) : String(BigInt(toId) + 1n));
    }
  }
  return answer("end", undefined);
}

interface Step {
  /** The newest first. */
  readonly messages: readonly FoundMessage[];
  /** What is left of the month ends here; undefined: nothing is. */
  readonly toId: string | undefined;
}

type Stepper = (month: number, toId: string, size: number) => Promise<Step | undefined>;

/** Undefined: the month has no table. */
function stepper(
  { statements, isTableMissing }: SearchParts,
  read: Read,
  { topic, fromId, key }: SearchRequest,
  partitions: number,
): Stepper {
  const statementOf = (month: number, toId: string, limit: number): Statement =>
    key === undefined
      ? statements.search.walk({ topic, month, partitions, fromId, toId, limit })
      : statements.search.searchKey({ topic, month, key, fromId, toId, limit });

  return async (month, toId, size) => {
    const limit = key === undefined ? Math.max(1, Math.ceil(size / partitions)) : KEY_STEP;
    let found: FoundMessage[];
    try {
      found = (await read(statementOf(month, toId, limit))).map(foundMessage);
    } catch (error) {
      if (isTableMissing(error)) return undefined;
      throw error;
    }
    found.sort((left, right) => compareIds(right.id, left.id));
    const counts = new Map<number, number>();
    // Behind the oldest of a partition that has more, another partition's may come before its next.
    let end = 0;
    let more = false;
    for (; end < found.length && !more; end += 1) {
      const from = key === undefined ? (found[end]?.partition ?? 0) : 0;
      const count = (counts.get(from) ?? 0) + 1;
      counts.set(from, count);
      more = count === limit;
    }
    const last = found[end - 1];
    const left = more && last !== undefined && compareIds(last.id, fromId) > 0;
    return { messages: found.slice(0, end), toId: left ? String(BigInt(last.id) - 1n) : undefined };
  };
}

function foundMessage(row: Row): FoundMessage {
  return {
    id: text(row, "id"),
    partition: integer(row, "partition_no"),
    key: textOrNull(row, "message_key"),
    type: textOrNull(row, "message_type"),
    contentType: textOrNull(row, "content_type"),
    headers: textOrNull(row, "headers"),
    orderingKey: textOrNull(row, "ordering_key"),
    deliverAt: textOrNull(row, "deliver_at"),
    ip: textOrNull(row, "ip"),
    port: numberOrNull(row, "port"),
    producerGroup: textOrNull(row, "producer_group"),
  };
}

async function detail(
  { statements, isTableMissing }: SearchParts,
  read: Read,
  topic: string,
  id: string,
): Promise<MessageDetail | DroppedMonth | undefined> {
  const month = queueMonth(id);
  const dropped = (await read(statements.search.droppedMonths(topic))).map(droppedMonth);
  const gone = dropped.find((each) => each.month === month);
  if (gone !== undefined) return gone;
  try {
    const [row] = await read(statements.search.readMessage({ topic, month, id }));
    if (row === undefined) return undefined;
    const back = { month, partition: partitionOfId(id), id, places: MOST_IN_A_RECORD };
    const [before] = await read(statements.rewind.placesBefore(topic, back));
    const fromId = before === undefined ? firstIdOf(month) : text(before, "id");
    const records = await read(statements.search.readRecords({ topic, month, id, fromId }));
    const places = await read(statements.search.readPlaces(topic, id));
    const groups = places.map(groupPlace);
    return {
      message: { ...foundMessage(row), body: text(row, "message_data") },
      entries: entriesAbout(id, records.map(entryOf), groups),
      groups,
    };
  } catch (error) {
    if (isTableMissing(error)) return undefined;
    throw error;
  }
}

/**
 * A batch's record is about the messages between its ends that went well: not about one that has a
 * record of its own in that round, nor about one that is still to come again.
 */
function entriesAbout(
  id: string,
  entries: readonly ConsumptionEntry[],
  groups: readonly GroupPlace[],
): ConsumptionEntry[] {
  const own = entries.filter(({ batch }) => batch === undefined);
  const waiting = new Set(groups.filter(({ redelivery }) => redelivery !== undefined).map(({ group }) => group));
  return entries.filter(({ batch, group, round }) => {
    if (batch === undefined || batch.firstId === id) return true;
    return !waiting.has(group) && !own.some((each) => each.group === group && each.round === round);
  });
}

function entryOf(row: Row): ConsumptionEntry {
  const lastId = textOrNull(row, "last_id");
  const result = integer(row, "result");
  return {
    group: text(row, "group_id"),
    round: integer(row, "round"),
    attempt: integer(row, "attempt"),
    result: RESULT_WORDS.find((word) => RESULTS[word] === result) ?? "unknown",
    at: text(row, "consumed_at"),
    durationMs: integer(row, "duration_ms"),
    error: textOrNull(row, "error"),
    ip: textOrNull(row, "ip"),
    port: numberOrNull(row, "port"),
    instance: text(row, "instance"),
    batch: lastId === null ? undefined : { firstId: text(row, "id"), lastId, messages: integer(row, "messages") },
  };
}

const RESULT_WORDS = Object.keys(RESULTS) as (keyof typeof RESULTS)[];
const REDELIVERY_STATES = ["waiting", "dead"] as const;

function groupPlace(row: Row): GroupPlace {
  const state = textOrNull(row, "state");
  return {
    group: text(row, "group_id"),
    nextId: text(row, "next_id"),
    round: integer(row, "round"),
    redelivery:
      state === null
        ? undefined
        : {
            state: REDELIVERY_STATES[Number(state)] ?? "set aside",
            attempt: integer(row, "attempt"),
            nextAttemptAt: isBehind(text(row, "next_attempt_at")) ? null : text(row, "next_attempt_at"),
            failReason: textOrNull(row, "fail_reason"),
          },
  };
}

function numberOrNull(row: Row, alias: string): number | null {
  return textOrNull(row, alias) === null ? null : integer(row, alias);
}
