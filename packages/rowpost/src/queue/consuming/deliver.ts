/** One call of the handler, and what came of it. */
import { describeError } from "../../runtime/errors.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { consumedMessage } from "./message.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Delivery, Outcome } from "./partition.ts";

/** A message with this header is for one group: an edited copy of its dead letter. */
export const ONLY_GROUP_HEADER = "rowpost-only-group";

/** Longest error in a record, in characters. */
const ERROR_LENGTH = 1_000;

/**
 * Never throws or rejects: what the handler throws is a failed attempt. A handler that returns no
 * promise has ended, and no turn of the event loop is spent on it.
 */
export function deliver(
  { topic, group, handler, maxAttempts, clock }: ConsumerSettings,
  delivery: Delivery,
  context: { readonly tx: Transaction | undefined; readonly signal: AbortSignal },
): Outcome | Promise<Outcome> {
  const { message, attempt, countedAttempt } = delivery;
  const startMs = clock.monotonicMs();
  const consumed = consumedMessage(topic, message, attempt);
  if ("broken" in consumed) return { kind: "failed", durationMs: 0, error: consumed.broken, final: true };
  const only = consumed.headers[ONLY_GROUP_HEADER];
  if (only !== undefined && only !== group) return { kind: "skipped", error: `only for group ${only}` };
  const ended = (): Outcome => ({ kind: "consumed", durationMs: clock.monotonicMs() - startMs });
  const thrown = (error: unknown): Outcome =>
    failed(error, { attempt: countedAttempt, maxAttempts, durationMs: clock.monotonicMs() - startMs });
  try {
    // Without `transactional` a handler that reads `tx` gets undefined, and its types say so not.
    const answer = handler(consumed, context as { readonly tx: Transaction; readonly signal: AbortSignal }, delivery);
    return isThenable(answer) ? Promise.resolve(answer).then(ended, thrown) : ended();
  } catch (error) {
    return thrown(error);
  }
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
    final: attempt >= maxAttempts,
  };
}
