/** Mismatches, in words. */
import type { Identity } from "./store.ts";

/**
 * Kind of mismatch. `no-message`: a business row without its message. `no-business-row`: a message
 * without its business row. `no-receipt`: a message that is `sent` without the broker's receipt.
 * `unconfirmed`: not confirmed by a consumer in time. `consumed-twice`: a key with more than one
 * effect. `unknown-to-producer`: a consumer handled a message that is neither in the producer's
 * table nor in its archive.
 */
export type FindingKind =
  | "no-message"
  | "no-business-row"
  | "no-receipt"
  | "unconfirmed"
  | "consumed-twice"
  | "unknown-to-producer";

/** All kinds, in the order of the checks. */
export const FINDING_KINDS: readonly FindingKind[] = [
  "no-message",
  "no-business-row",
  "no-receipt",
  "unconfirmed",
  "consumed-twice",
  "unknown-to-producer",
];

/** One mismatch. */
export interface Finding {
  /** Kind of mismatch. */
  readonly kind: FindingKind;
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** Id of the message, if any. */
  readonly id: string | undefined;
  /** When the message was created or handled: ISO 8601, UTC. Undefined for a row of a query. */
  readonly at: string | undefined;
  /** The consumer concerned. */
  readonly consumer: string | undefined;
  /** The problem, in plain words. */
  readonly problem: string;
  /** Recommended action. */
  readonly advice: string;
}

/** The variable part of a finding. */
interface Details {
  readonly id?: string;
  readonly atMs?: number;
  readonly consumer?: string;
  /** Precedes the problem. */
  readonly about?: string;
}

const WORDS: Readonly<Record<FindingKind, readonly [problem: string, advice: string]>> = {
  "no-message": [
    "the business row has no message, neither in the table nor in its archive",
    "look for the place that writes this row without outbox.enqueue in the same transaction; to send it now, enqueue the message with this type and key",
  ],
  "no-business-row": [
    "the message has no business row",
    "its consumers act on something that is not there: was the row deleted, or is the message written outside of the row's transaction? If they must not get it: rowpost suspend --id",
  ],
  "no-receipt": [
    "the message is sent, but has no receipt of the broker: something else than a relay has set its state",
    "ask its consumers whether they have it; if they have not: rowpost retry --resend --id",
  ],
  unconfirmed: [
    "no consumer has confirmed it in time",
    "look at the consumer's log; when it works again: rowpost retry --resend --id, or rowpost confirm if it has taken effect",
  ],
  "consumed-twice": [
    "its effect is there more than once",
    "take one of them back; the inbox, or a unique key on the effect, keeps it from happening again",
  ],
  "unknown-to-producer": [
    "was handled, and is neither in the producer's table nor in its archive",
    "a message of another producer or database, one that was deleted early, or one that nobody here has written: look at the copy in the broker, by its message id",
  ],
};

export function createFinding(kind: FindingKind, { type, key }: Identity, details: Details = {}): Finding {
  const { about, atMs, consumer, id } = details;
  const [problem, advice] = WORDS[kind];
  return {
    kind,
    type,
    key,
    id,
    consumer,
    at: atMs === undefined ? undefined : new Date(atMs).toISOString(),
    problem: about === undefined ? problem : `${about}${problem}`,
    advice: id === undefined ? advice : advice.replaceAll("--id", `--id ${id}`),
  };
}
