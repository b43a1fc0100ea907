/** One publish call: plans each topic, writes its pieces, and gives every message its result. */

import { type AbortScope, createAbortScope, orAborted } from "../../runtime/abort-scope.ts";
import { byTopic } from "../../runtime/by-topic.ts";
import { describeError } from "../../runtime/errors.ts";
import type { RequestSlots } from "../../runtime/request-slots.ts";
import { ABORTED, BEHIND, type OutgoingMessage, type PublishFailed, type PublishResult } from "../broker.ts";
import type { Outcome } from "./answers.ts";
import { outcomesOf } from "./answers.ts";
import type { IoReply } from "./client.ts";
import type { Connections, Lease } from "./connections.ts";
import type { Failure } from "./failures.ts";
import { failure, notConnected } from "./failures.ts";
import type { Settings } from "./options.ts";
import type { Indexed, Piece, PieceLimits } from "./plan.ts";
import { needsTransaction, planTopic } from "./plan.ts";

/** What publishing needs of the rest of the adapter. */
export interface Publishing {
  readonly settings: Settings;
  readonly connections: Connections;
  /** Bounds the bytes that are on their way: what waits here is `notStarted` at a deadline, and not `unknown`. */
  readonly slots: RequestSlots;
  readonly pieces: PieceLimits;
  /** Aborted when the broker is closed. */
  readonly closing: AbortSignal;
}

/** State of one call. */
interface Run {
  readonly publishing: Publishing;
  readonly lease: Lease;
  readonly scope: AbortScope;
  /** Undefined: not started. */
  readonly results: (PublishResult | undefined)[];
  /** The server cannot be written to: what has not started yet is not tried any more. */
  offline: Failure | undefined;
}

/** State of one topic within it. */
interface TopicRun {
  readonly run: Run;
  readonly stream: string;
  /** The topic is throttled or away: as above, for this topic. */
  away: Failure | undefined;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<PublishResult[]> {
  if (signal.aborted) return batch.map(() => ABORTED);
  const scope = createAbortScope(signal, publishing.closing);
  try {
    const lease = await connect(publishing, signal, scope);
    if (lease === undefined) return batch.map(() => ABORTED);
    const results = new Array<PublishResult | undefined>(batch.length);
    if ("status" in lease) return inKeyOrder(batch, results.fill(resultOf(lease)));
    const run: Run = { publishing, lease, scope, results, offline: undefined };
    try {
      await Promise.all([...byTopic(batch)].map(([topic, messages]) => publishTopic(run, topic, messages)));
    } finally {
      lease.release();
    }
    return inKeyOrder(batch, results);
  } finally {
    scope.end();
  }
}

/** Undefined: the broker was closed meanwhile. */
async function connect(
  { connections, settings }: Publishing,
  deadline: AbortSignal,
  scope: AbortScope,
): Promise<Lease | Failure | undefined> {
  const leasing = connections.lease();
  const lease = await orAborted(leasing, scope);
  if (lease !== undefined) return lease;
  // It may still come about, and is then there for the next call.
  void leasing.then((late) => {
    if (!("status" in late)) late.release();
  });
  return deadline.aborted
    ? notConnected("CONNECT_TIMEOUT", `no connection to ${settings.label} before the publish deadline`)
    : undefined;
}

async function publishTopic(run: Run, topic: string, messages: readonly Indexed[]): Promise<void> {
  const { publishing, lease, results } = run;
  let stream: string;
  try {
    stream = publishing.settings.streamOf(topic);
  } catch (error) {
    const failed = failure("TOPIC_INVALID", `streamOf("${topic}"): ${describeError(error)}`, { scope: "message" });
    for (const { index } of messages) results[index] = resultOf(failed);
    return;
  }
  const sizes = {
    maxBodyBytes: publishing.settings.maxBodyBytes,
    maxBulkBytes: lease.maxBulkBytes,
  };
  const { unkeyed, keyed, refused } = planTopic(messages, sizes, publishing.pieces);
  for (const { index, failure: refusal } of refused) results[index] = resultOf(refusal);
  const topicRun: TopicRun = { run, stream, away: undefined };
  await Promise.all([...unkeyed.map((piece) => sendPiece(topicRun, piece)), sendInSequence(topicRun, keyed)]);
}

/** One piece after the other, without the messages behind a failed one of their key. */
async function sendInSequence(topicRun: TopicRun, pieces: readonly Piece[]): Promise<void> {
  const { results } = topicRun.run;
  const failedKeys = new Set<string | undefined>();
  for (const { items, bytes } of pieces) {
    const open = items.filter(({ orderingKey }) => !failedKeys.has(orderingKey));
    if (open.length > 0) await sendPiece(topicRun, { items: open, bytes });
    for (const { index, orderingKey } of open) if (results[index]?.status !== "sent") failedKeys.add(orderingKey);
  }
}

/** Never rejects. What it gives no result was not started. */
async function sendPiece(topicRun: TopicRun, piece: Piece): Promise<void> {
  const { run } = topicRun;
  const { slots } = run.publishing;
  if (!(await slots.acquire(piece.bytes, run.scope))) return;
  try {
    // What became known while this piece was waiting for its turn.
    const known = run.offline ?? topicRun.away;
    const outcomes = known === undefined ? await write(topicRun, piece) : piece.items.map(() => known);
    for (const [place, { index }] of piece.items.entries()) settle(topicRun, index, outcomes[place]);
  } finally {
    slots.release(piece.bytes);
  }
}

async function write({ run, stream }: TopicRun, { items }: Piece): Promise<readonly Outcome[]> {
  const { settings } = run.publishing;
  const { minReplicas, replicaTimeoutMs, xaddArguments } = settings;
  // ioredis refuses what is written on a connection that has ended with the same words with which it gives up what was written before.
  if (run.lease.client.status !== "ready") {
    const failed = notConnected(
      "CONNECTION_LOST",
      `the connection to ${settings.label} broke before this message's turn`,
    );
    return items.map(() => failed);
  }
  const isTransaction = needsTransaction(items);
  const pipeline = run.lease.client.pipeline();
  if (isTransaction) pipeline.multi();
  for (const { fields } of items) pipeline.xadd(stream, ...xaddArguments, ...fields);
  // Adds EXEC; the call below sends.
  if (isTransaction) void pipeline.exec();
  if (minReplicas > 0) pipeline.wait(minReplicas, replicaTimeoutMs);
  let replies: readonly IoReply[] | undefined;
  try {
    replies = await orAborted(pipeline.exec(), run.scope);
  } catch (error) {
    // ioredis refuses a pipeline as a whole before it writes any of it.
    const failed = notConnected("CONNECTION_LOST", describeError(error));
    return items.map(() => failed);
  }
  if (replies !== undefined) return outcomesOf(replies, { messages: items.length, isTransaction, minReplicas });
  run.lease.retire();
  return items.map(() => NO_ANSWER);
}

function settle(topicRun: TopicRun, index: number, outcome: Outcome | undefined): void {
  const { run } = topicRun;
  if (outcome === undefined) return;
  if (typeof outcome === "string") {
    run.results[index] = { status: "sent", messageId: outcome };
    return;
  }
  if (outcome.reconnect) run.lease.retire();
  if (outcome.scope === "connection") run.offline ??= outcome;
  if (outcome.scope === "destination") topicRun.away ??= outcome;
  run.results[index] = resultOf(outcome);
}

/**
 * Behind a message that was not sent, nothing else is said of its key than `notStarted`; or `unknown`, of what was handed over together
 * with it and may be stored.
 */
function inKeyOrder(
  batch: readonly OutgoingMessage[],
  results: readonly (PublishResult | undefined)[],
): PublishResult[] {
  const failedKeys = new Set<string>();
  return batch.map(({ topic, orderingKey }, index) => {
    const result = results[index];
    if (orderingKey === undefined) return result ?? ABORTED;
    const key = JSON.stringify([topic, orderingKey]);
    if (result?.status === "sent") return result;
    const isBehind = failedKeys.has(key);
    failedKeys.add(key);
    const mayBeStored = result?.status === "failed" && result.scope === "unknown";
    return isBehind && !mayBeStored ? BEHIND : (result ?? ABORTED);
  });
}

function resultOf({ scope, retriable, code, reason }: Failure): PublishFailed {
  return { status: "failed", scope, retriable, code, reason };
}

const NO_ANSWER: Failure = failure("NO_ANSWER", "no answer before the publish deadline", { scope: "unknown" });
