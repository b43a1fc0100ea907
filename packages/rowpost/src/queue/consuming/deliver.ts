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

/** Never rejects: what the handler throws is a failed attempt. */
export async function deliver(
  { topic, group, handler, maxAttempts, clock }: ConsumerSettings,
  delivery: Delivery,
  context: { readonly tx: Transaction | undefined; readonly signal: AbortSignal },
): Promise<Outcome> {
  const { message, attempt, countedAttempt } = delivery;
  const startMs = clock.monotonicMs();
  const consumed = consumedMessage(topic, message, attempt);
  if ("broken" in consumed) return { kind: "failed", durationMs: 0, error: consumed.broken, final: true };
  const only = consumed.headers[ONLY_GROUP_HEADER];
  if (only !== undefined && only !== group) return { kind: "skipped", error: `only for group ${only}` };
  try {
    // Without `transactional` a handler that reads `tx` gets undefined, and its types say so not.
    await handler(consumed, context as { readonly tx: Transaction; readonly signal: AbortSignal }, delivery);
    return { kind: "consumed", durationMs: clock.monotonicMs() - startMs };
  } catch (error) {
    return failed(error, { attempt: countedAttempt, maxAttempts, durationMs: clock.monotonicMs() - startMs });
  }
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
