/** One call of the handler, and what came of it. */
import { type LinkedSignal, linkSignals } from "../../runtime/abort.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { Delivery, Outcome } from "./delivery.ts";
import { HandlerTimeoutError } from "./errors.ts";
import { consumedMessage } from "./message.ts";
import type { ConsumerSettings } from "./options.ts";

/** A message with this header is for one group: an edited copy of its dead letter. */
export const ONLY_GROUP_HEADER = "rowpost-only-group";

/** Longest error in a record, in characters. */
const ERROR_LENGTH = 1_000;

/**
 * Never throws or rejects: what the handler throws is a failed attempt. A handler that returns no
 * promise has ended, and no turn of the event loop is spent on it.
 */
export function deliver(
  settings: ConsumerSettings,
  delivery: Delivery,
  context: { readonly tx: Transaction | undefined; readonly signal: AbortSignal },
): Outcome | Promise<Outcome> {
  const { topic, group, handler, maxAttempts, clock, handlerTimeoutMs } = settings;
  const { message, attempt, countedAttempt } = delivery;
  const startMs = clock.monotonicMs();
  delivery.startedMs = startMs;
  delivery.warnAtMs = startMs + settings.warnAfterMs;
  const consumed = consumedMessage(topic, message, attempt);
  if ("broken" in consumed) return { kind: "failed", durationMs: 0, error: consumed.broken, final: true };
  const only = consumed.headers[ONLY_GROUP_HEADER];
  if (only !== undefined && only !== group) return { kind: "skipped", error: `only for group ${only}` };
  const ended = (): Outcome => ({ kind: "consumed", durationMs: clock.monotonicMs() - startMs });
  const thrown = (error: unknown): Outcome => {
    const durationMs = clock.monotonicMs() - startMs;
    if (settings.isUnavailable(error)) return { kind: "away", durationMs, error };
    return failed(error, { attempt: countedAttempt, maxAttempts, durationMs });
  };
  const limit = handlerTimeoutMs === undefined ? undefined : { ms: handlerTimeoutMs, ...linkSignals(context.signal) };
  const { signal } = limit ?? context;
  try {
    // Without `transactional` a handler that reads `tx` gets undefined, and its types say so not.
    const answer = handler(consumed, { tx: context.tx as Transaction, signal }, delivery);
    if (!isThenable(answer)) return ended();
    const end = Promise.resolve(answer).then(ended, thrown);
    return limit === undefined ? end : inTime(settings, delivery, end, limit);
  } catch (error) {
    return thrown(error);
  }
}

/** A late handler counts as a failed attempt; its result is logged when it comes, and ignored. */
function inTime(
  { clock, logger, topic, group, maxAttempts }: ConsumerSettings,
  { message: { id, key }, countedAttempt }: Delivery,
  end: Promise<Outcome>,
  limit: LinkedSignal & { readonly ms: number },
): Promise<Outcome> {
  const { ms } = limit;
  return new Promise((resolve) => {
    let isLate = false;
    const timer = clock.setTimer(() => {
      isLate = true;
      const error = new HandlerTimeoutError(id, ms);
      limit.abort(error);
      const late = failed(error, { attempt: countedAttempt, maxAttempts, durationMs: ms });
      resolve(late.kind === "failed" ? { ...late, isLate } : late);
    }, ms);
    void end.then((outcome) => {
      timer.cancel();
      limit.release();
      if (!isLate) return resolve(outcome);
      const how = outcome.kind === "failed" ? outcome.error : outcome.kind;
      logger.warn("a handler ended after its time was over; what it did stays", { topic, group, id, key, how });
    });
  });
}

/** As `await` would see it: a function may have a `then`, and a proxy may answer for one. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayHaveThen = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayHaveThen && typeof (value as { readonly then?: unknown }).then === "function";
}

/** A failed attempt, the last one or not. */
export function failed(
  error: unknown,
  { attempt, maxAttempts, durationMs }: { attempt: number; maxAttempts: number; durationMs: number },
): Outcome {
  const text = describeError(error).replaceAll("\0", "").slice(0, ERROR_LENGTH);
  return {
    kind: "failed",
    durationMs,
    error: text.replace(/\p{Surrogate}/gu, "\u{FFFD}"),
    thrown: error,
    final: attempt >= maxAttempts,
  };
}
