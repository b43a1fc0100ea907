/**
 * One call of every statement of a dialect: for preparing each on a live server, and for looking at
 * plans.
 */
import * as alerts from "../../src/databases/sql/alerts/statements.ts";
import * as byHand from "../../src/databases/sql/by-hand/statements.ts";
import { spelled } from "../../src/databases/sql/cold.ts";
import { countKeys, find } from "../../src/databases/sql/insight/find.ts";
import * as insight from "../../src/databases/sql/insight/statements.ts";
import * as operations from "../../src/databases/sql/operations/statements.ts";
import { pickAll } from "../../src/databases/sql/past-refused.ts";
import * as reconciling from "../../src/databases/sql/reconciling/statements.ts";
import type { DialectStatements, TopicsRequest } from "../../src/databases/sql/statements.ts";
import type { EncodedMessage } from "../../src/outbox/message-writer.ts";
import type { Fence, Outcome, RowToken, ShardLease } from "../../src/relay/store.ts";
import type { Statement } from "../../src/transactions/executor.ts";

export const OWNER = "sample-owner";

/** All shards at epoch 1. */
export function sampleFence(shards: number): Fence {
  return { owner: OWNER, epochs: Array.from({ length: shards }, () => "1") };
}

function sampleRows(count: number, shards: number): RowToken[] {
  return Array.from({ length: count }, (_, index) => ({
    id: String(index * 100 + 100),
    shard: index % shards,
    deliveryCount: 0,
    lockVersion: "0",
    identityHash: "0",
  }));
}

export function sampleOutcome(row: RowToken, change: Partial<Outcome> = {}): Outcome {
  return {
    ...row,
    toState: "sent",
    messageId: "01AB",
    retryDelta: 0,
    deliveryDelta: 0,
    nextRetryInMs: null,
    failReason: null,
    ...change,
  };
}

export function sampleMessage(change: Partial<EncodedMessage> = {}): EncodedMessage {
  return {
    type: "order.created",
    key: "sample-1",
    topic: "orders",
    body: "{}",
    headers: null,
    contentType: null,
    orderingKey: null,
    delayMs: null,
    deliverAtMs: null,
    createdBy: "test",
    ...change,
  };
}

function sampleTopics(shards: readonly number[] | undefined): TopicsRequest {
  const limits = { afterId: "0", immediateLimit: 100, dueLimit: 25 };
  return { shards, bodyLimit: 65_536, topics: ["t1", "it's a 't2'"].map((topic) => ({ topic, ...limits })) };
}

/** The statements that run for every batch, or every second. */
export function hotStatements(statements: DialectStatements): Statement[] {
  const { leases, relay } = statements;
  const shards = statements.facts.shardCount;
  const fence = sampleFence(shards);
  const rows = sampleRows(500, shards);
  const failed = rows.map((row) => sampleOutcome(row, { toState: "failed", retryDelta: 1, failReason: 'a "reason"' }));
  return [
    relay.scan({
      shards: undefined,
      afterId: "0",
      bodyLimit: Number.MAX_SAFE_INTEGER,
      immediateLimit: 500,
      dueLimit: 125,
    }),
    relay.scan({
      shards: [0, 1, 2],
      afterId: "0",
      bodyLimit: Number.MAX_SAFE_INTEGER,
      immediateLimit: 500,
      dueLimit: 125,
    }),
    ...[undefined, [0, 1, 2]].map((asked) => relay.scanTopics(sampleTopics(asked))),
    relay.readBodies(rows.slice(0, 5).map(({ id }) => id)),
    relay.nextTopics(["", "t1", "t2"]),
    relay.keyQueues({
      keys: rows.slice(0, 50).map(({ id }, index) => ({ orderingKey: `o${index * 3}`, upToId: id })),
      failedBlocks: true,
    }),
    relay.keyQueues({ keys: [{ orderingKey: "o3", upToId: "200000" }], failedBlocks: false }),
    relay.claim({ fence, rows }),
    relay.verifyClaim({ fence, rows }),
    relay.readRows(rows.map(({ id }) => id)),
    relay.lockFreeRows(rows.map(({ id }) => id)),
    relay.listInFlight({ fence, idsByShard: [{ shard: 0, ids: ["1", "2"] }] }),
    relay.readHeld(fence),
    ...(["sending", "pending"] as const).flatMap((from) => [
      relay.settleSent({ fence, outcomes: rows.map((row) => sampleOutcome(row)), elapsedMs: 5, from }),
      relay.deleteSent({ fence, rows, from }),
      relay.settleOther({ fence, outcomes: failed, elapsedMs: 5, from }),
    ]),
    leases.renew({ owner: OWNER, leaseMs: 30_000, held: [{ shard: 0, epoch: "1" }] }),
    leases.readLeases(),
    leases.readEveryLease(),
    leases.readInstances(1_000),
    leases.readSuspensions(),
    leases.reportInstance({ owner: OWNER, label: "host:1" }),
  ];
}

/** Everything else. */
export function otherStatements(statements: DialectStatements): Statement[] {
  const { admin, enqueue, housekeeping, leases, schema } = statements;
  const shards = statements.facts.shardCount;
  const fence = sampleFence(shards);
  const rows = sampleRows(10, shards);
  const observed: ShardLease[] = [
    { shard: 0, owner: undefined, epoch: "0", leaseUntil: "1970-01-01T00:00:00.000Z", leaseMs: 0 },
  ];
  const action = { author: "somebody", reason: "a reason" };
  const ids = rows.map(({ id }) => id);
  const messages = [sampleMessage(), sampleMessage({ key: "sample-2", delayMs: 5, orderingKey: "o" })];
  const transitions = ["slowRetry", "resume", "confirmTimeoutResend", "confirmTimeoutFail", "clearTimer"] as const;
  return [
    ...(schema.lock === undefined ? [] : [schema.lock]),
    schema.readVersions(),
    schema.recordVersion({ version: 999, name: "sample", statements: [] }, "checksum"),
    schema.columns(),
    enqueue.insert(messages),
    enqueue.findIdentities(messages),
    ...(enqueue.seeIdentities === undefined ? [] : [enqueue.seeIdentities(messages)]),
    enqueue.deleteIdentities(messages),
    enqueue.insert(messages, { asked: true, mark: "mark" }),
    ...(enqueue.readRoom === undefined ? [] : [enqueue.readRoom({ asked: false, mark: "" })]),
    ...(enqueue.markTransaction === undefined ? [] : [enqueue.markTransaction("mark")]),
    ...reportSamples(statements, ids),
    leases.ensureShards(),
    leases.writeReport({ owner: OWNER, report: "{}" }),
    leases.readReports(),
    leases.removeInstance(OWNER),
    leases.forgetInstances(),
    leases.take({ owner: OWNER, leaseMs: 30_000, observed }),
    leases.recoverShards([0]),
    leases.recoverListed([0]),
    leases.clearListed([0]),
    leases.release({ owner: OWNER, shards: [{ shard: 0, epoch: "1" }] }),
    housekeeping.listSending({ shards: undefined, limit: 10 }),
    housekeeping.listSending({ shards: [0], limit: 10 }),
    housekeeping.recoverRows({ fence, rows }),
    housekeeping.listTimed(10),
    ...transitions.flatMap((transition) =>
      [false, true].map((skipLocked) =>
        housekeeping.applyTimed({
          transition,
          skipLocked,
          decisions: rows.map((row) => ({ ...row, transition, failReason: null, nextRetryInMs: null })),
        }),
      ),
    ),
    housekeeping.listStrays(10),
    housekeeping.failUnknownStates(ids),
    housekeeping.failUnreached(ids),
    housekeeping.failPending({ fence, rows: rows.map((row) => ({ ...row, failReason: "x" })), nextRetryInMs: null }),
    housekeeping.suspendPending({ fence, rows, failReason: "x", endsInMs: 5 }),
    housekeeping.park({ fence, rows, parkMs: 5 }),
    housekeeping.setBehind({
      fence,
      rows: rows.slice(1).map((row) => ({ ...row, headId: "100", instant: "3000-01-01 00:00:00.100" })),
    }),
    housekeeping.bringBack({ instants: ["3000-01-01 00:00:00.100", "3000-01-01 00:00:00.200"], ...pickAll(10) }),
    housekeeping.nextBehind("3000-01-01 00:00:00.000"),
    housekeeping.resetBackoff({ topic: "orders", limit: 10, stepMs: 5, ...pickAll(10) }),
    housekeeping.readClock(),
    ...(housekeeping.oldTransactions === undefined
      ? []
      : [housekeeping.oldTransactions({ olderThanMs: 5, heldTransactions: 5 })]),
    housekeeping.shortenWaits({ beyondMs: 1_000, stepMs: 5, ...pickAll(10) }),
    housekeeping.lockFinished({ state: "sent", olderThanMs: 5, afterId: "0", limit: 10 }),
    housekeeping.lockFinished({ state: "consumed", olderThanMs: 5, afterId: "0", limit: 10 }),
    housekeeping.passFinished({ state: "sent", afterId: "0", rows: 10 }),
    housekeeping.passFinished({ state: "consumed", afterId: "0", rows: 10 }),
    housekeeping.copyToArchive(ids),
    housekeeping.deleteRows(ids),
    housekeeping.purgeArchive({ olderThanMs: 5, limit: 10 }),
    housekeeping.gauges(10),
    admin.operatorRetry({ ids, action }),
    admin.bringForward({ ids, action }),
    admin.suspendRows({ ids, action, untilMs: 5 }),
    admin.resumeRows({ ids, action }),
    admin.putSuspension({ scope: "topic", value: "orders", reason: "r", author: "a", endsInMs: null }),
    ...byHandSamples(statements, ids),
    ...insightSamples(statements, ids),
    ...operationsSamples(statements),
    ...alertSamples(statements),
    ...reconcileSamples(statements),
  ];
}

/** What people do by hand, but for what writes messages. */
function byHandSamples({ table }: DialectStatements, ids: readonly string[]): Statement[] {
  const rule = { scope: "topic", value: "orders" } as const;
  return [
    byHand.lockRows(table, ids),
    byHand.recordChange(table, {
      author: "somebody",
      reason: "a reason",
      action: "retry",
      changed: 2,
      ids,
      details: undefined,
      via: "cli",
      result: "done",
      beforeImage: "[]",
    }),
    byHand.lockSuspension(table, rule),
    byHand.deleteSuspension(table, rule),
    byHand.listSuspendedBy(table, { ...rule, limit: 10 }),
  ].map((statement) => spelled(table.words, statement));
}

/** What the console keeps. */
function operationsSamples({ table }: DialectStatements): Statement[] {
  const filter = { author: "ann", action: "retry", result: "done" } as const;
  const hash = "0".repeat(64);
  return [
    operations.readAudit(table, { filter, beforeId: "7", limit: 10 }),
    operations.addSession(table, { hash, holder: "{}", lifeMs: 1_000 }),
    operations.readSession(table, { hash, idleMs: 1_000 }),
    operations.touchSession(table, { hash, afterMs: 1_000 }),
    operations.endSession(table, hash),
    operations.forgetSessions(table),
    operations.estimate(table),
  ].map((statement) => spelled(table.words, statement));
}

/** What is wrong, and who is told. */
function alertSamples({ table }: DialectStatements): Statement[] {
  const id = "00000000-0000-4000-8000-000000000000";
  const owner = "11111111-0000-4000-8000-000000000000";
  const silence = { rule: "failed", subject: "orders", forMs: 1_000, author: "ann", reason: "ticket 7" };
  return [
    alerts.addAlerts(table),
    alerts.holdAlerts(table, { owner, leaseMs: 1_000 }),
    alerts.saveAlerts(table, { owner, leaseMs: 1_000, state: "{}" }),
    alerts.readAlerts(table),
    alerts.lateConfirmations(table, 1_000),
    alerts.lateSending(table, 1_000),
    alerts.findQueue(),
    alerts.releaseAlerts(table, owner),
    alerts.addSilence(table, { ...silence, id }),
    alerts.listSilences(table, 10),
    alerts.endSilence(table, id),
    alerts.forgetSilences(table),
  ].map((statement) => spelled(table.words, statement));
}

/** What consumers report. */
function reportSamples({ confirm }: DialectStatements, ids: readonly string[]): Statement[] {
  const identities = [
    { type: "order.created", key: "sample-1" },
    { type: "order.created", key: "sample-2" },
  ];
  return [
    ...(confirm.confirmIdentities === undefined ? [] : [confirm.confirmIdentities(identities)]),
    confirm.lockIdentities(identities, "messages"),
    confirm.lockIdentities(identities, "archive"),
    confirm.confirmRows(ids),
    confirm.confirmArchived(identities),
    confirm.touchRows(ids),
    confirm.reportFailed(ids.map((id) => ({ id, reason: "NOT_CONSUMED: x" }))),
    confirm.addConfirmations(ids.map((id) => ({ id, consumer: "billing" }))),
    confirm.readConfirmations(ids),
    confirm.forgetConfirmations({ olderThanMs: 5, limit: 10 }),
    confirm.countUnknown(10),
    confirm.keepUnknown([{ type: "t", key: "k", consumer: "", reason: null, times: 1 }]),
    confirm.forgetUnknown({ olderThanMs: 5, limit: 10 }),
  ];
}

/** The query is what an operator would write. */
function reconcileSamples({ table }: DialectStatements): Statement[] {
  const times = [table.clock.instant(0), table.words.wallClock("2026-11-23 18:00:00.000")].join(" AS message_type, ");
  const keys = ["it's", ...Array.from({ length: 499 }, (_, index) => `k${index * 7}`)];
  const query = { text: `SELECT ${times} AS message_key`, limit: 10 };
  return [
    ...[true, false].flatMap((typed) => [
      reconciling.userRows({ ...query, typed }),
      reconciling.repeatedRows({ ...query, typed }),
    ]),
    ...[true, false].map((archived) => reconciling.existing(table, { type: "order.created", keys, archived })),
    reconciling.readUnknown(table, 10),
  ].map((statement) => spelled(table.words, statement));
}

/** What operators look at. */
function insightSamples({ table }: DialectStatements, ids: readonly string[]): Statement[] {
  const match = {
    ids,
    types: ["t", "u"],
    key: "k",
    keyPrefix: "k",
    topic: "orders",
    orderingKey: "o",
    states: ["pending", "sending", "failed"],
    failReasonContains: "x",
    createdAfter: "2026-01-01T00:00:00Z",
    createdBefore: "2036-01-01T00:00:00Z",
  } as const;
  const all = { newestFirst: true, limit: 10 };
  return [
    insight.listUnconfirmed(table, 10),
    insight.countUnconfirmed(table, 10),
    insight.confirmedBy(table, ids),
    insight.lastConsumers(table, 10),
    ...[true, false].flatMap((archived) => [
      find(table, { ...all, match, archived, along: "names", lowId: "1", highId: "100" }),
      find(table, { ...all, match: {}, archived, along: "ids", lowId: "1", newestFirst: false }),
      find(table, { ...all, match: { types: ["t"], keyPrefix: "k" }, archived, along: "names" }),
      countKeys(table, { types: ["t", "u"], keyPrefix: "k", archived, limit: 10 }),
      insight.readMessages(table, { ids, archived, bodies: archived }),
      insight.chunkEnd(table, { archived, newestFirst: archived, rows: 10, lowId: "1" }),
      insight.nextType(table, { archived, after: "t" }),
      insight.idBounds(table, { archived }),
      insight.createdFrom(table, { archived, ids }),
    ]),
    insight.createdOfLastArchived(table, 10),
    find(table, { ...all, match: { states: ["pending", "failed"] }, archived: false, along: "states" }),
    find(table, { ...all, match: { states: ["pending"], orderingKey: "o" }, archived: false, along: "keys" }),
    insight.countStates(table, { states: ["sent", "sending"], limit: 10 }),
    insight.countStates(table, { states: ["sending"], limit: 10, toSort: true }),
    insight.countByState(table),
    insight.placeOf(table, "100"),
    insight.countWaiting(table, 10),
    insight.readChanges(table, { id: "100", limit: 10 }),
    insight.oldestDue(table),
  ].map((statement) => spelled(table.words, statement));
}
