/** A message under way, and what came of it. */
import type { Resting } from "../../runtime/rests.ts";
import type { DueRedelivery, StoredQueueMessage } from "../store.ts";
import type { HandedOut } from "./message.ts";

/** What came of a delivery. */
export type Outcome =
  | { readonly kind: "consumed"; readonly durationMs: number }
  | {
      readonly kind: "failed";
      readonly durationMs: number;
      readonly error: string;
      /** What the handler threw. */
      readonly thrown?: unknown;
      readonly final: boolean;
      /** Its handler still runs. */
      readonly isLate?: boolean;
    }
  /** What the handler calls is away; only from its call, never what a delivery ends with. */
  | { readonly kind: "away"; readonly durationMs: number; readonly error: unknown }
  | { readonly kind: "delayed"; readonly dueInMs: number }
  /** An earlier one of its ordering key has failed and is not done. */
  | { readonly kind: "behind" }
  /** Not for this group. */
  | { readonly kind: "skipped"; readonly error: string }
  /** An earlier owner of the partition has finished it, beyond its progress. */
  | { readonly kind: "known" };

/** A message under way. */
export interface Delivery extends HandedOut, Resting {
  readonly message: StoredQueueMessage;
  readonly attempt: number;
  /** The same, counted from where it was redelivered by hand. */
  readonly countedAttempt: number;
  /** Out of message_redelivery. */
  readonly again: boolean;
  /** When its handler was called. */
  startedMs: number | undefined;
  /** It waits for somebody who is away. */
  rests: boolean;
  /** When it is told next that its handler still runs. */
  warnAtMs: number;
  /** Not to be started any more. */
  dropped: boolean;
  /** It stands in the records, before the progress has reached it. */
  recorded: boolean;
  /** What comes of it without a call of the handler. */
  decided: Outcome | undefined;
  outcome: Outcome | undefined;
}

/** What was tried before on a message. */
export type Tried = Pick<DueRedelivery, "attempt" | "firstAttempt">;

/** Of a message read for the first time, or `again`; `tried`: so many attempts before. */
export function deliveryOf(message: StoredQueueMessage, tried?: Tried, again: boolean = tried !== undefined): Delivery {
  const attempt = tried?.attempt ?? 0;
  return {
    message,
    attempt: attempt + 1,
    countedAttempt: attempt - (tried?.firstAttempt ?? 0) + 1,
    again,
    startedMs: undefined,
    rests: false,
    warnAtMs: Number.POSITIVE_INFINITY,
    dropped: false,
    recorded: false,
    decided: undefined,
    outcome: undefined,
  };
}

/** It is consumed. */
export function isDone({ outcome }: Delivery): boolean {
  return outcome?.kind === "consumed";
}

/** It is one of these whose end a record tells. */
export function hasRecord(outcome: Outcome): outcome is Extract<Outcome, { kind: "consumed" | "failed" | "skipped" }> {
  return outcome.kind === "consumed" || outcome.kind === "failed" || outcome.kind === "skipped";
}

/** Later ones of its key have to wait. */
export function holdsUp(outcome: Outcome | undefined): boolean {
  return outcome?.kind === "behind" || (outcome?.kind === "failed" && !outcome.final);
}
