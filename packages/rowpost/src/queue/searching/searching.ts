/** Searches month by month, newest first, in bounded steps. */

import type { QueueSql } from "../../databases/database.ts";
import type { Cold } from "../../databases/sql/cold.ts";
import { openRoom, type Room } from "../../databases/sql/queue/room.ts";
import { isBehind, RESULTS } from "../../databases/sql/queue/values.ts";
import { integer, type Row, text, textOrNull } from "../../databases/sql/rows.ts";
import {
  firstIdOf,
  MOST_IN_A_RECORD,
  monthOf,
  monthsBetween,
  partitionOfId,
  queueMonth,
} from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { droppedMonths } from "../retention/statements.ts";
import { placesBefore } from "../rewinding/statements.ts";
import type {
  ConsumptionEntry,
  DroppedMonth,
  FoundMessage,
  GroupPlace,
  MessageDetail,
  SearchRequest,
  SearchResult,
} from "./requests.ts";
import { readMessage, readPlaces, readRecords, readTopic, searchKey, walk } from "./statements.ts";

/** Small, since most pages fill soon. */
const FIRST_STEP = 200;
const LONGEST_STEP = 4_000;
/** Messages of one key examined per step. */
const KEY_STEP = 200;
const STATEMENT_TIMEOUT_MS = 10_000;

export interface Searching {
  /** Undefined: no such topic. */
  search(request: SearchRequest): Promise<SearchResult | undefined>;
  /** Undefined: no such message; a month: it was dropped. */
  detail(topic: string, id: string): Promise<MessageDetail | DroppedMonth | undefined>;
  close(): Promise<void>;
}

/** Opens no connection before its first use. */
export function createSearching(sql: QueueSql): Searching {
  const room = openRoom(sql, { statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  return room.plainly<Searching>({
    search: (request) => search(room, request),
    detail: (topic, id) => detail(room, topic, id),
    close: () => room.close(),
  });
}

/** Dropped from the moment its mark was set. */
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
  /** Newest first. */
  readonly months: readonly number[];
  readonly dropped: readonly DroppedMonth[];
  readonly absent: readonly number[];
}

async function mapOf(
  { months: monthsOf, read }: Room,
  { topic, fromId, toId }: SearchRequest,
  created: string,
): Promise<RangeMap> {
  const low = Math.max(queueMonth(fromId), 1);
  const high = queueMonth(toId);
  const within = (month: number): boolean => month >= low && month <= high;
  const tables = await monthsOf(topic);
  const dropped = (await read(droppedMonths(topic))).map(droppedMonth);
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

async function search(room: Room, request: SearchRequest): Promise<SearchResult | undefined> {
  const { topic, limit, timeLimitMs } = request;
  const untilMs = performance.now() + timeLimitMs;
  const [settings] = await room.read(readTopic(topic));
  if (settings === undefined) return undefined;
  const map = await mapOf(room, request, text(settings, "created"));
  const step = stepper(room, request, integer(settings, "partitions"));
  const messages: FoundMessage[] = [];
  const searched: number[] = [];
  const absent = [...map.absent];
  let rows = 0;
  const answer = (stopped: SearchResult["stopped"], nextId: string | undefined): SearchResult => ({
    messages,
    rows,
    stopped,
    nextId,
    months: searched,
    dropped: map.dropped,
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
  /** Newest first. */
  readonly messages: readonly FoundMessage[];
  /** Last id still to search; undefined: none. */
  readonly toId: string | undefined;
}

type Stepper = (month: number, toId: string, size: number) => Promise<Step | undefined>;

/** Undefined: the month has no table. */
function stepper({ isTableMissing, read }: Room, { topic, fromId, key }: SearchRequest, partitions: number): Stepper {
  const statementOf = (month: number, toId: string, limit: number): Cold =>
    key === undefined
      ? walk({ topic, month, partitions, fromId, toId, limit })
      : searchKey({ topic, month, key, fromId, toId, limit });

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
    // The next row may belong to another partition.
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
  { isTableMissing, read }: Room,
  topic: string,
  id: string,
): Promise<MessageDetail | DroppedMonth | undefined> {
  const month = queueMonth(id);
  const dropped = (await read(droppedMonths(topic))).map(droppedMonth);
  const gone = dropped.find((each) => each.month === month);
  if (gone !== undefined) return gone;
  try {
    const [row] = await read(readMessage({ topic, month, id }));
    if (row === undefined) return undefined;
    const back = { topic, month, partition: partitionOfId(id), id, places: MOST_IN_A_RECORD };
    const [before] = await read(placesBefore(back));
    const fromId = before === undefined ? firstIdOf(month) : text(before, "id");
    const records = await read(readRecords({ topic, month, id, fromId }));
    const places = await read(readPlaces(topic, id));
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
 * A batch's record covers the messages that succeeded, except those with their own record in that
 * round and those still to come again.
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
