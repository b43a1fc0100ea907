import { describeError } from "../../runtime/errors.ts";
import { HandlerTimeoutError, withHandlerTimeout } from "../../runtime/handler-timeout.ts";
import { isThenable } from "../../runtime/thenable.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { EXPIRES_HEADER, RECALLED_HEADER } from "../producing/encode.ts";
import type { Delivery, Outcome } from "./delivery.ts";
import { consumedMessage } from "./message.ts";
import type { ConsumerSettings } from "./options.ts";

/** Marks an edited copy of a dead letter, for this group only. */
export const ONLY_GROUP_HEADER = "rowpost-only-group";

/** In characters. */
const ERROR_LENGTH = 1_000;

/**
 * Never throws: an error of the handler is a failed attempt. A synchronous handler costs no turn of
 * the event loop.
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
  const expiresAt = consumed.headers[EXPIRES_HEADER];
  if (expiresAt !== undefined && Date.parse(expiresAt) <= clock.wallMs())
    return { kind: "skipped", error: consumed.headers[RECALLED_HEADER] ?? `expired at ${expiresAt}` };
  const ended = (): Outcome => ({ kind: "consumed", durationMs: clock.monotonicMs() - startMs });
  const thrown = (error: unknown): Outcome => {
    const durationMs = clock.monotonicMs() - startMs;
    if (error instanceof HandlerTimeoutError) {
      return { ...failed(error, { attempt: countedAttempt, maxAttempts, durationMs }), isLate: true };
    }
    if (settings.isUnavailable(error)) return { kind: "away", durationMs, error };
    return failed(error, { attempt: countedAttempt, maxAttempts, durationMs });
  };
  try {
    // Undefined without `transactional`, although the types do not say so.
    const call = (signal: AbortSignal): unknown =>
      handler(consumed, { tx: context.tx as Transaction, signal }, delivery);
    if (handlerTimeoutMs !== undefined)
      return inTime(settings, message, handlerTimeoutMs, context.signal, call).then(ended, thrown);
    const answer = call(context.signal);
    return isThenable(answer) ? Promise.resolve(answer).then(ended, thrown) : ended();
  } catch (error) {
    return thrown(error);
  }
}

/** A late end of the handler is logged and ignored. */
export function inTime(
  { clock, logger, topic, group }: ConsumerSettings,
  { id, key }: { readonly id: string; readonly key: string | null | undefined },
  ms: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => unknown,
): Promise<unknown> {
  const ended = (error: unknown): void => {
    const how = error === undefined ? "consumed" : describeError(error);
    logger.warn("a handler ended after its time was over; what it did stays", { topic, group, id, key, how });
  };
  return withHandlerTimeout({ clock, ms, what: id, signal, ended }, call);
}

export function failed(
  error: unknown,
  { attempt, maxAttempts, durationMs }: { attempt: number; maxAttempts: number; durationMs: number },
): Extract<Outcome, { kind: "failed" }> {
  const text = describeError(error).replaceAll("\0", "").slice(0, ERROR_LENGTH);
  return {
    kind: "failed",
    durationMs,
    error: text.replace(/\p{Surrogate}/gu, "\u{FFFD}"),
    thrown: error,
    final: attempt >= maxAttempts,
  };
}
