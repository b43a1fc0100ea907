/** Searches a topic and looks up one message: checks the request and shapes the answer. */
import { decodeBody, decodeHeaders } from "../../message/decode.ts";
import { checkQueueId, MonthDroppedError } from "../../message/queue-errors.ts";
import { LAST_QUEUE_ID, queueIdAt, queueIdMs } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError, UnknownTopicError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { checkTopic } from "../topics/names.ts";
import type {
  ConsumptionEntry,
  DroppedMonth,
  FoundMessage,
  GroupPlace,
  MessageDetail,
  SearchRequest,
} from "./requests.ts";
import type { Searching } from "./searching.ts";

/** Conditions of `queue.search`; all given ones must match. */
export interface QueueSearch {
  /** The topic. */
  readonly topic: string;
  /** Appended at this instant or later. Default: from the first message. */
  readonly from?: Date | undefined;
  /** Appended before this instant. Default: up to now. */
  readonly to?: Date | undefined;
  /** Business key; uses an index. */
  readonly key?: string | undefined;
  /** Id; uses an index. */
  readonly id?: string | undefined;
  /** A header. Examines every message of the range until the page is full. */
  readonly header?: { readonly name: string; readonly value: string } | undefined;
  /** Message type. Examines every message of the range until the page is full. */
  readonly type?: string | undefined;
  /** Messages per page, 1 to 1,000. Default 50. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly before?: string | undefined;
  /** Time limit in ms, after which the answer is what was found so far. Default 5,000. */
  readonly timeLimitMs?: number | undefined;
}

/** A message in a list, without its body. */
export interface QueueMessageSummary {
  /** The topic. */
  readonly topic: string;
  /** Decimal string. */
  readonly id: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** Business key, if any. */
  readonly key: string | undefined;
  /** Message type, if any. */
  readonly type: string | undefined;
  /** Media type as stored; undefined: JSON. */
  readonly contentType: string | undefined;
  /** Headers of the producer; undefined when unreadable. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Messages with the same key keep their order. */
  readonly orderingKey: string | undefined;
  /** Time of the append by the database's clock, taken from the id. */
  readonly sentAt: Date;
  /** Earliest delivery. */
  readonly deliverAt: Date | undefined;
  /** Producer of the message. */
  readonly producer: {
    readonly group: string | undefined;
    readonly ip: string | undefined;
    readonly port: number | undefined;
  };
}

/** A page, newest first, with how complete it is. */
export interface QueueSearchAnswer {
  /** Newest first. */
  readonly messages: readonly QueueMessageSummary[];
  /** True when the whole range was searched and none of its months was dropped. */
  readonly complete: boolean;
  /** Why it ended: end of the range, full page, or time limit. */
  readonly stopped: "end" | "limit" | "time";
  /** Pass it as `before` to continue; undefined: everything was searched. */
  readonly next: string | undefined;
  /** Messages examined. */
  readonly rows: number;
  /** Months searched, newest first, such as 202611. */
  readonly months: readonly number[];
  /** Dropped months of the range: who, when, why, and their archives. */
  readonly droppedMonths: readonly DroppedMonth[];
  /**
   * Months of the range without a table that rowpost did not drop: nothing was appended in them, or
   * they were dropped by hand.
   */
  readonly absentMonths: readonly number[];
}

/** State of a message in one group. */
export interface QueueMessageGroup {
  /** The consumer group. */
  readonly group: string;
  /**
   * `unread`: still to come. `waiting`: comes again. `dead`: given up. `skipped`, `discarded`: by a
   * person. `consumed`. `passed`: before the group's progress without a record, because the group
   * began or was rewound past it.
   */
  readonly state: "unread" | "waiting" | "dead" | "consumed" | "skipped" | "discarded" | "passed";
  /** Attempts so far, if waiting or dead. */
  readonly attempts: number | undefined;
  /** Next attempt, if waiting; undefined behind another message of its key. */
  readonly nextAttemptAt: Date | undefined;
  /** Last error, if waiting or dead. */
  readonly failReason: string | undefined;
}

/** One attempt of one group. */
export interface QueueMessageAttempt extends Omit<ConsumptionEntry, "at" | "error" | "ip" | "port"> {
  /** When its outcome was written, by the database's clock. */
  readonly at: Date;
  /** Error of a failed attempt. */
  readonly error: string | undefined;
  /** Address of the consumer. */
  readonly ip: string | undefined;
  /** Port of the consumer, if known. */
  readonly port: number | undefined;
}

/** Everything known about a message. */
export interface QueueMessageDetail extends QueueMessageSummary {
  /** JSON value, text or bytes; undefined when unreadable. */
  readonly body: unknown;
  /** Raw text of the row. */
  readonly bodyText: string;
  /** Why body or headers are unreadable. */
  readonly problem: string | undefined;
  /** All attempts (who, when, from where), ordered by group, round and attempt. */
  readonly attempts: readonly QueueMessageAttempt[];
  /** State of the message in every group of the topic. */
  readonly groups: readonly QueueMessageGroup[];
}

const KINDS: OptionKinds<QueueSearch> = {
  topic: "any",
  id: "any",
  before: "any",
  from: "any",
  to: "any",
  key: "string",
  type: "string",
  header: "object",
  limit: "number",
  timeLimitMs: "number",
};

export async function searchQueue(store: Searching, given: QueueSearch): Promise<QueueSearchAnswer> {
  const request = checkedSearch(given);
  const found = await store.search(request);
  if (found === undefined) throw new UnknownTopicError(request.topic);
  return {
    messages: found.messages.map((message) => summaryOf(request.topic, message)),
    complete: found.stopped === "end" && found.dropped.length === 0,
    stopped: found.stopped,
    next: found.nextId,
    rows: found.rows,
    months: found.months,
    droppedMonths: found.dropped,
    absentMonths: found.absent,
  };
}

function checkedSearch(given: QueueSearch): SearchRequest {
  checkOptions("search", given, KINDS);
  const { key, type, header } = given;
  const topic = checkTopic(given.topic);
  const id = given.id === undefined ? undefined : checkQueueId("id", given.id);
  const from = given.from === undefined ? "0" : queueIdAt(instant("from", given.from));
  const to = given.to === undefined ? LAST_QUEUE_ID : before(queueIdAt(instant("to", given.to)));
  const last = given.before === undefined ? to : lower(to, before(checkQueueId("before", given.before)));
  return {
    topic,
    fromId: id === undefined ? from : higher(from, id),
    toId: id === undefined ? last : lower(last, id),
    key,
    matches: (message) =>
      (type === undefined || message.type === type) &&
      (header === undefined || headersOf(message)?.[header.name] === header.value),
    limit: wholeNumber("search: limit", given.limit ?? 50, 1, 1_000),
    timeLimitMs: wholeNumber("search: timeLimitMs", given.timeLimitMs ?? 5_000, 1, 600_000),
  };
}

function before(id: string): string {
  return String(BigInt(id) - 1n);
}

function lower(left: string, right: string): string {
  return BigInt(left) < BigInt(right) ? left : right;
}

function higher(left: string, right: string): string {
  return BigInt(left) > BigInt(right) ? left : right;
}

function instant(name: string, value: unknown): number {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.getTime();
  throw new ConfigurationError(`${name} must be a Date`);
}

function headersOf(message: FoundMessage): Readonly<Record<string, string>> | undefined {
  const decoded = decodeHeaders(message.headers);
  return decoded.broken === undefined ? decoded.headers : undefined;
}

function summaryOf(topic: string, message: FoundMessage): QueueMessageSummary {
  const { id, partition, key, type, contentType, orderingKey, deliverAt, producerGroup, ip, port } = message;
  return {
    topic,
    id,
    partition,
    key: key ?? undefined,
    type: type ?? undefined,
    contentType: contentType ?? undefined,
    headers: headersOf(message),
    orderingKey: orderingKey ?? undefined,
    sentAt: new Date(queueIdMs(id)),
    deliverAt: deliverAt === null ? undefined : new Date(deliverAt),
    producer: { group: producerGroup ?? undefined, ip: ip ?? undefined, port: port ?? undefined },
  };
}

export async function showMessage(
  store: Searching,
  topic: string,
  id: string,
): Promise<QueueMessageDetail | undefined> {
  const found = await store.detail(checkTopic(topic), checkQueueId("id", id));
  if (found === undefined) return undefined;
  if ("month" in found) throw monthDropped(`message ${id} of topic ${topic}`, found);
  return detailOf(topic, found);
}

function monthDropped(what: string, { month, author, droppedAt, archive }: DroppedMonth): MonthDroppedError {
  const where = archive === null ? "It was not archived." : `Its archive: ${archive}.`;
  return new MonthDroppedError(what, [month], `${author} dropped it at ${droppedAt}. ${where}`);
}

function detailOf(topic: string, { message, entries, groups }: MessageDetail): QueueMessageDetail {
  const body = decodeBody(message, { hasContentType: true });
  const headers = decodeHeaders(message.headers);
  return {
    ...summaryOf(topic, message),
    body: body.broken === undefined ? body.value : undefined,
    bodyText: message.body,
    problem: body.broken ?? headers.broken,
    attempts: entries
      .toSorted(
        (left, right) =>
          compareTexts(left.group, right.group) || left.round - right.round || left.attempt - right.attempt,
      )
      .map(({ at, error, ip, port, ...rest }) => ({
        ...rest,
        at: new Date(at),
        error: error ?? undefined,
        ip: ip ?? undefined,
        port: port ?? undefined,
      })),
    groups: groups.map((place) => groupOf(message.id, place, entries)),
  };
}

/** Final results, the decisive one first. */
const FINAL = ["consumed", "skipped", "discarded", "dead"] as const;

function groupOf(
  id: string,
  { group, nextId, round, redelivery }: GroupPlace,
  entries: readonly ConsumptionEntry[],
): QueueMessageGroup {
  const own = entries.filter((entry) => entry.group === group);
  const has = (result: ConsumptionEntry["result"]): boolean => own.some((entry) => entry.result === result);
  const again = redelivery?.state === "set aside" ? undefined : redelivery;
  const rest = {
    attempts: again?.attempt,
    nextAttemptAt:
      again?.state === "waiting" && again.nextAttemptAt !== null ? new Date(again.nextAttemptAt) : undefined,
    failReason: again?.failReason ?? undefined,
  };
  const isUnread = BigInt(nextId) <= BigInt(id) && !own.some((entry) => entry.round === round);
  if (isUnread) return { group, state: "unread", ...rest };
  if (again !== undefined) return { group, state: again.state === "dead" ? "dead" : "waiting", ...rest };
  const state = FINAL.find(has) ?? "passed";
  return { group, state, ...rest };
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
