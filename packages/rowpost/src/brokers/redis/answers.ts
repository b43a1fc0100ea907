import type { IoReply } from "./client.ts";
import type { Failure } from "./failures.ts";
import { failure, failureOfClient, failureOfReply, isReplyError } from "./failures.ts";

export type Outcome = string | Failure;

export interface PieceShape {
  readonly messages: number;
  readonly isTransaction: boolean;
  /** Replicas that must have it; 0: sent without WAIT. */
  readonly minReplicas: number;
}

export function outcomesOf(replies: readonly IoReply[], shape: PieceShape): Outcome[] {
  const { messages, isTransaction, minReplicas } = shape;
  const outcomes = isTransaction
    ? ofTransaction(replies.slice(1, messages + 1), replies[messages + 1] ?? NO_REPLY)
    : ofPipeline(replies.slice(0, messages));
  if (minReplicas === 0) return outcomes;
  const unproven = replicationFailure(replies.at(-1) ?? NO_REPLY, minReplicas);
  return unproven === undefined ? outcomes : outcomes.map((one) => (typeof one === "string" ? unproven : one));
}

function ofPipeline(replies: readonly IoReply[]): Outcome[] {
  return replies.map(([error, reply]) => (isNone(error) ? idOf(reply) : failureOf(error)));
}

function ofTransaction(queued: readonly IoReply[], [error, reply]: IoReply): Outcome[] {
  if (isNone(error)) {
    const ids: readonly unknown[] = Array.isArray(reply) ? reply : [];
    return queued.map((_, index) => (ids[index] instanceof Error ? failureOf(ids[index]) : idOf(ids[index])));
  }
  // EXECABORT only says that something was refused; the reply to that command has the reason.
  const [refusal] = queued.find(([refused]) => isReplyError(refused)) ?? [error];
  const failed = failureOf(refusal);
  return queued.map(() => failed);
}

/** XADD replies with the id, or with nothing if NOMKSTREAM found no stream. */
function idOf(reply: unknown): Outcome {
  if (typeof reply === "string" && reply !== "") return reply;
  if (reply === null) return NO_STREAM;
  return failureOfClient(new Error(`XADD was answered with ${typeof reply}`));
}

function failureOf(error: unknown): Failure {
  return isReplyError(error) ? failureOfReply(error) : failureOfClient(error);
}

function isNone(error: unknown): boolean {
  return error === null || error === undefined;
}

function replicationFailure([error, reply]: IoReply, minReplicas: number): Failure | undefined {
  if (!isNone(error)) return failureOf(error);
  const replicas = Number(reply);
  if (replicas >= minReplicas) return undefined;
  const reason = `stored by the primary, and by ${replicas} of the ${minReplicas} replicas that minReplicas asks for`;
  return failure("NOT_REPLICATED", reason, { scope: "destination" });
}

const NO_REPLY: IoReply = [new Error("there was no reply")];

const NO_STREAM = failure("TOPIC_NOT_FOUND", "the topic has no stream", {
  scope: "message",
  absent: "missing",
  advice: "make it with its consumer group: XGROUP CREATE STREAM GROUP $ MKSTREAM",
});
