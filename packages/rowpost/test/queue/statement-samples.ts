/**
 * One call of every statement of the queue in a dialect: for preparing each on a live server, and
 * for looking at plans.
 */
import type { DialectName } from "../../src/databases/database.ts";
import * as mysqlStatements from "../../src/databases/mysql/queue/statements.ts";
import { words as mysqlWords } from "../../src/databases/mysql/words.ts";
import * as postgresStatements from "../../src/databases/postgres/queue/statements.ts";
import { words as postgresWords } from "../../src/databases/postgres/words.ts";
import { type Cold, spelled, type Words } from "../../src/databases/sql/cold.ts";
import { infoTable, recordTable } from "../../src/databases/sql/queue/names.ts";
import type { QueueStatements } from "../../src/databases/sql/queue/statements.ts";
import * as sqliteStatements from "../../src/databases/sqlite/queue/statements.ts";
import { words as sqliteWords } from "../../src/databases/sqlite/words.ts";
import * as consuming from "../../src/queue/consuming/statements.ts";
import * as groups from "../../src/queue/groups/statements.ts";
import * as recalling from "../../src/queue/recalling/statements.ts";
import * as retention from "../../src/queue/retention/statements.ts";
import * as rewind from "../../src/queue/rewinding/statements.ts";
import * as search from "../../src/queue/searching/statements.ts";
import type { QueuedMessage } from "../../src/queue/store.ts";
import * as topicRows from "../../src/queue/topics/statements.ts";
import * as verify from "../../src/queue/verifying/statements.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { oldId } from "./months.ts";

type Spelled<Module> = {
  readonly [Name in keyof Module]: Module[Name] extends (...given: infer Given) => Cold
    ? (...given: Given) => Statement
    : never;
};

function spelledIn<Module extends object>(words: Words, module: Module): Spelled<Module> {
  const entries = Object.entries(module) as [string, (...given: unknown[]) => Cold][];
  return Object.fromEntries(
    entries.map(([name, make]) => [name, (...given: unknown[]) => spelled(words, make(...given))]),
  ) as Spelled<Module>;
}

/** What stands once for all engines. */
interface ColdStatements {
  readonly consuming: Spelled<typeof consuming>;
  readonly groups: Spelled<typeof groups>;
  readonly retention: Spelled<typeof retention>;
  readonly rewind: Spelled<typeof rewind>;
  readonly recalling: Spelled<typeof recalling>;
  readonly search: Spelled<typeof search>;
  readonly topicRows: Spelled<typeof topicRows>;
  readonly verify: Spelled<typeof verify>;
}

function allOf(whole: QueueStatements, words: Words): AllStatements {
  return {
    ...whole,
    consuming: spelledIn(words, consuming),
    groups: spelledIn(words, groups),
    retention: spelledIn(words, retention),
    rewind: spelledIn(words, rewind),
    recalling: spelledIn(words, recalling),
    search: spelledIn(words, search),
    topicRows: spelledIn(words, topicRows),
    verify: spelledIn(words, verify),
  };
}

export type AllStatements = QueueStatements & ColdStatements;

/** Of every dialect. */
export const STATEMENTS: Readonly<Record<DialectName, AllStatements>> = {
  mysql: allOf(mysqlStatements, mysqlWords),
  postgres: allOf(postgresStatements, postgresWords),
  sqlite: allOf(sqliteStatements, sqliteWords),
};
export const TOPIC = "orders";
/** A month that is over; its tables have to be there. */
export const MONTH = 202601;
const OWNER = "sample-owner";
const KEY = { topic: TOPIC, group: "billing" };
/** Of a call: its first statement in a user's transaction, a later one, any in rowpost's own. */
const FIRST = { asked: false, mark: "sample" };
const ASKED = { asked: true, mark: "sample" };
const OWN = { asked: false, mark: "sample", isOwn: true };
const TWO = [
  [0, 1],
  [2, 1],
] as const;

type Append = QueueStatements["append"];

function advanced(
  append: Append,
  counts: Parameters<Append["advance"]>[1],
  check: Parameters<ReturnType<Append["findTopic"]>>[0],
): Statement[] {
  return append.advance(TOPIC, counts).map((make) => make(check));
}

/** What runs for every batch, or every second, by name. */
export function hotQueueStatements(statements: AllStatements, rows: number): Readonly<Record<string, Statement>> {
  const { append, beats, consume, consuming, groups, recalling, redelivery, rewind, search, sources, verify } =
    statements;
  // Partition 0 has every third row.
  const id = (row: number): string => oldId(MONTH, row - (row % 3), 0);
  const range = {
    topic: TOPIC,
    month: MONTH,
    partition: 0,
    fromId: id(rows / 2),
    toId: id(rows),
    limit: 500,
    bodyLimit: 65_536,
  };
  const ids = Array.from({ length: 50 }, (_, n) => id(rows / 2 + 30 * n));
  const keys = Array.from({ length: 50 }, (_, n) => `k${n * 7}`);
  const redeliveries = ids.map((each) => ({
    id: each,
    attempt: 2,
    state: "waiting" as const,
    dueInMs: 5,
    failReason: "x",
  }));
  const progress = { partition: 0, owner: OWNER, epoch: "1", fromId: "0", orId: "0", nextId: id(3), month: MONTH };
  const place = { ip: "10.0.0.8", port: 1, instance: OWNER };
  const record = {
    lastId: null,
    messages: 1,
    key: "k",
    attempt: 1,
    result: "consumed" as const,
    durationMs: 5,
    error: null,
  };
  const recorded = { month: MONTH, round: 0, place, records: ids.map((each) => ({ ...record, id: each })) };
  const member = { key: KEY, owner: OWNER, label: "host:1", leaseMs: 30_000, held: [{ shard: 0, epoch: "1" }] };
  const leases = statements.holding(KEY);
  const searched = { topic: TOPIC, month: MONTH, fromId: "0", toId: oldId(MONTH, rows, 63), limit: 50 };
  return {
    "range read": consume.readMessages(range),
    "read at the end": consume.readMessages({ ...range, fromId: id(rows - 9) }),
    "records looked for": consume.readRecorded(KEY, { month: MONTH, round: 0, ids }),
    "ids read": consume.readIds({ topic: TOPIC, month: MONTH, ids }),
    "counters read": consuming.readCounters([TOPIC]),
    "progress read": consuming.readProgress(KEY),
    "progress moved": consume.moveProgress(KEY, progress),
    ...(consume.moveAndRecord === undefined
      ? {}
      : { "progress moved, with records": consume.moveAndRecord(KEY, progress, recorded) }),
    "redeliveries due": consuming.dueRedeliveries(KEY, 0, 100),
    "first due": redelivery.firstDue([KEY]),
    "held-up keys": redelivery.heldUpKeys(KEY, 0, keys),
    "redeliveries changed": redelivery.changeRedeliveries(KEY, 0, redeliveries),
    "redeliveries deleted": redelivery.deleteRedeliveries(KEY, 0, ids),
    "keys released": redelivery.releaseKeys(KEY, 0, keys),
    "leases renewed": beats.renewPartitions([member], "skip"),
    "leases renewed, waiting": beats.renewPartitions([member], "wait"),
    "leases read": leases.readLeases(),
    "leases of groups read": beats.readPartitions([KEY]),
    "members read": beats.readMembers([KEY]),
    "lag, first": groups.firstMessage(range),
    "lag, counted": groups.countMessages(range, 1_000),
    "groups read": groups.readGroups(TOPIC, "billing"),
    "redeliveries counted": groups.countRedeliveries(KEY, 0, 1_000),
    "dead letters listed": groups.pageRedeliveries(KEY, { partition: 0, id: id(rows / 2) }, 100),
    "topic found": append.findTopic(TOPIC)(ASKED),
    "counter taken": at(advanced(append, [[0, 3]], FIRST), 0),
    "counter taken, asked": at(advanced(append, [[0, 3]], ASKED), 0),
    "counters taken": at(advanced(append, TWO, FIRST), 0),
    "counters taken, asked": at(advanced(append, TWO, ASKED), 0),
    "source ids put": at(sources.putSources(TOPIC, [{ sourceId: "s1", messageId: id(3) }]), -1),
    "source ids forgotten": sources.forgetSources(86_400_000, 100),
    "key searched": search.searchKey({ ...searched, key: "k7" }),
    "hot key searched": search.searchKey({ ...searched, key: "hot" }),
    "partitions walked": search.walk({ ...searched, partitions: 3 }),
    "message read": search.readMessage({ topic: TOPIC, month: MONTH, id: id(rows / 2) }),
    "headers locked": recalling.lockHeaders(TOPIC, id(rows / 2)),
    "headers written": recalling.writeHeaders(TOPIC, id(rows / 2), "{}"),
    "records read": search.readRecords({ topic: TOPIC, month: MONTH, id: id(rows / 2), fromId: id(rows / 2 - 999) }),
    "places read": search.readPlaces(TOPIC, id(rows / 2)),
    "chunk verified": verify.readChunk({ ...range, group: "billing", limit: 1_000 }),
    "places back": rewind.placesBefore({ topic: TOPIC, month: MONTH, partition: 0, id: id(rows / 2), places: 1_000 }),
    "places ahead": rewind.placesBehind({ topic: TOPIC, month: MONTH, partition: 0, id: id(rows / 2), places: 1_000 }),
    "milestones passed": rewind.passedMilestones(range, { beforeId: id(rows), limit: 2 ** 31 - 1 }),
  };
}

/** Everything else, and the INSERTs, which read nothing. */
export function otherQueueStatements(statements: AllStatements): Statement[] {
  const { append, beats, consume, consuming, groups, redelivery, search, sources, topicRows, topics, verify } =
    statements;
  const id = oldId(MONTH, 3);
  const newTopic = { topic: TOPIC, partitions: 3, retentionMonths: 2 };
  const place = { ip: "10.0.0.8", port: 1, instance: OWNER };
  const record = { id, lastId: null, messages: 1, key: "k", attempt: 1, durationMs: 5, error: "e" };
  const progress = { partition: 0, owner: OWNER, epoch: "1", fromId: "0", orId: "0", nextId: undefined, month: 0 };
  const recorded = { month: MONTH, round: 0, place, records: [{ ...record, result: "failed" as const }] };
  const range = { topic: TOPIC, month: MONTH, partition: 0, fromId: "0", toId: id };
  const leases = statements.holding(KEY);
  const observed = [{ shard: 0, owner: undefined, epoch: "0", leaseUntil: "1970-01-01T00:00:00.000Z", leaseMs: 0 }];
  const waiting = { id, attempt: 1, state: "waiting", dueInMs: null, failReason: null } as const;
  return [
    topics.monthTables(TOPIC),
    topics.now(),
    topicRows.insertTopic(newTopic),
    topicRows.insertCounters(newTopic),
    topicRows.readTopics(TOPIC),
    topicRows.readTopics(undefined),
    topicRows.updateTopic(newTopic),
    topicRows.lockCounters(TOPIC),
    topicRows.isUnread(TOPIC),
    topicRows.spreadKeys(TOPIC),
    topicRows.deleteTopic("message_redelivery", TOPIC),
    ...[append.markTransaction?.("sample") ?? []].flat(),
    ...[OWN, FIRST, ASKED].flatMap((check) => [
      append.findTopic(TOPIC)(check),
      ...advanced(append, [[0, 1]], check),
      ...advanced(append, TWO, check),
    ]),
    ...[sampleMessage({}), sampleMessage({ delayMs: 5, orderingKey: "o" })].map((message, index) =>
      append.insertMessages({
        topic: TOPIC,
        month: MONTH,
        rows: [{ id, message }],
        producer: { group: "shop", ip: "10.0.0.7", port: 8080 },
      })(index === 0 ? OWN : ASKED),
    ),
    ...sources.putSources(TOPIC, [{ sourceId: "s", messageId: id }]),
    sources.seeTables(),
    consuming.insertProgress(KEY, "start"),
    consuming.insertProgress(KEY, "end"),
    consume.moveProgress(KEY, progress),
    consume.insertRecords(KEY, recorded),
    redelivery.putRedeliveries(KEY, 0, [waiting]),
    groups.putGroup(KEY),
    groups.pause(KEY, "ann", "r"),
    groups.resume(KEY),
    groups.readGroups(TOPIC, undefined),
    groups.lockPartition(KEY, 0),
    groups.passHead(KEY, 0, { id, month: MONTH }),
    groups.lockRedeliveries(KEY, 0, [id]),
    groups.redeliverNow(KEY, 0, [id]),
    groups.forgetGroup(KEY, 1),
    groups.deleteRows("message_consumption", KEY),
    beats.reportMembers([{ key: KEY, owner: OWNER, label: "host:1", leaseMs: 30_000, held: [] }]),
    consuming.removeMember(KEY, OWNER),
    consuming.forgetMembers(KEY),
    leases.take({ owner: OWNER, leaseMs: 30_000, observed }),
    leases.release({ owner: OWNER, shards: [{ shard: 0, epoch: "1" }] }),
    search.readTopic(TOPIC),
    verify.readGroups(TOPIC),
    ...rewindSamples(statements, range),
    ...retentionSamples(statements),
  ];
}

function rewindSamples(
  { rewind }: ColdStatements,
  range: { readonly month: number; readonly partition: number; readonly fromId: string; readonly toId: string },
): Statement[] {
  const entry = { rewind: 1, partition: 0, round: 1, from: "0", to: "1", undoOf: null, author: "ann", reason: "r" };
  return [
    rewind.lockProgress(KEY),
    rewind.movePartition(KEY, { partition: 0, from: "0", to: "1", month: MONTH }),
    rewind.insertRewind(KEY, entry),
    rewind.readRewinds(KEY, 10),
    rewind.forgetReplayed(KEY, 0, "1"),
    rewind.restore(KEY, 0, "1"),
    rewind.setAside(KEY, 0, "1"),
    rewind.countMessages(TOPIC, range),
    rewind.countConsumed(KEY, range),
    rewind.insertMilestone(TOPIC, 0, "1"),
  ];
}

function retentionSamples({ retention }: ColdStatements): Statement[] {
  const drop = { topic: TOPIC, month: MONTH, owner: OWNER, author: "ann", reason: "r", force: false };
  return [
    retention.droppedMonths(TOPIC),
    retention.lockGroups(TOPIC),
    retention.lockMark(drop),
    retention.insertMark(drop),
    retention.takeMark(drop),
    retention.touchMark(drop, { messages: 1, records: 1 }, "a.gz"),
    retention.releaseMark(drop),
    retention.finishMark(drop, 1),
    retention.removeMark(drop),
    retention.isUnreadFrom({ topic: TOPIC, month: MONTH, partition: 0, fromId: "0" }),
    retention.waitingIn(TOPIC, "0", "1"),
    retention.deleteBetween("message_redelivery", TOPIC, "0", "1"),
    retention.deleteBetween("message_milestone", TOPIC, "0", "1"),
    retention.countRows(infoTable(TOPIC, MONTH)),
    retention.archiveMessages(infoTable(TOPIC, MONTH), { partition: 0, id: "0" }, 10),
    retention.archiveRecords(recordTable(TOPIC, MONTH), { id: "0", group: "g", round: 0, attempt: 0 }, 10),
    retention.elect(TOPIC, 1_000),
  ];
}

function sampleMessage(values: Partial<QueuedMessage>): QueuedMessage {
  return {
    partition: 0,
    key: "k",
    type: null,
    body: "{}",
    contentType: null,
    headers: null,
    orderingKey: null,
    delayMs: null,
    deliverAtMs: null,
    sourceId: null,
    ...values,
  };
}

function at<Item>(list: readonly Item[], index: number): Item {
  const item = list.at(index);
  if (item === undefined) throw new Error("there is no such entry");
  return item;
}
