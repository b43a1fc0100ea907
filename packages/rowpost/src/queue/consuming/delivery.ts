import type { Resting } from "../../runtime/rests.ts";
import type { DueRedelivery, StoredQueueMessage } from "../store.ts";
import type { HandedOut } from "./message.ts";

export type Outcome =
  | { readonly kind: "consumed"; readonly durationMs: number }
  | {
      readonly kind: "failed";
      readonly durationMs: number;
      readonly error: string;
      readonly thrown?: unknown;
      readonly final: boolean;
      /** Its handler still runs. */
      readonly isLate?: boolean;
    }
  /** A called service is away. Only a call ends this way, never a delivery. */
  | { readonly kind: "away"; readonly durationMs: number; readonly error: unknown }
  | { readonly kind: "delayed"; readonly dueInMs: number }
  /** An earlier message of its ordering key failed and is not done. */
  | { readonly kind: "behind" }
  /** Not for this group. */
  | { readonly kind: "skipped"; readonly error: string }
  /** Finished by an earlier owner, beyond its progress. */
  | { readonly kind: "known" };

export interface Delivery extends HandedOut, Resting {
  readonly message: StoredQueueMessage;
  readonly attempt: number;
  /** `attempt`, counted from the last redelivery by hand. */
  readonly countedAttempt: number;
  /** Read from message_redelivery. */
  readonly again: boolean;
  startedMs: number | undefined;
  /** Waits for a service that is away. */
  rests: boolean;
  warnAtMs: number;
  /** Must no longer start. */
  dropped: boolean;
  /** Recorded before the progress reached it. */
  recorded: boolean;
  /** Outcome known without a call of the handler. */
  decided: Outcome | undefined;
  outcome: Outcome | undefined;
}

export type Tried = Pick<DueRedelivery, "attempt" | "firstAttempt">;

/** `tried`: earlier attempts. */
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

export function isDone({ outcome }: Delivery): boolean {
  return outcome?.kind === "consumed";
}

/** Whether the outcome gets a record. */
export function hasRecord(outcome: Outcome): outcome is Extract<Outcome, { kind: "consumed" | "failed" | "skipped" }> {
  return outcome.kind === "consumed" || outcome.kind === "failed" || outcome.kind === "skipped";
}

export function holdsUp(outcome: Outcome | undefined): boolean {
  return outcome?.kind === "behind" || (outcome?.kind === "failed" && !outcome.final);
}
