/** What does not add up, in words. */
import type { Identity } from "./store.ts";

/**
 * What is wrong. `no-message`: a business row without its message. `no-business-row`: a message
 * without its business row. `no-receipt`: a message that is `sent` without the broker's receipt.
 * `unconfirmed`: one that no consumer has confirmed in time. `consumed-twice`: a key whose effect
 * is there more than once. `unknown-to-producer`: a consumer has handled a message that is neither
 * in the producer's table nor in its archive.
 */
export type FindingKind =
  | "no-message"
  | "no-business-row"
  | "no-receipt"
  | "unconfirmed"
  | "consumed-twice"
  | "unknown-to-producer";

/** All kinds, in the order in which they are looked for. */
export const FINDING_KINDS: readonly FindingKind[] = [
  "no-message",
  "no-business-row",
  "no-receipt",
  "unconfirmed",
  "consumed-twice",
  "unknown-to-producer",
];

/** One thing that does not add up. */
export interface Finding {
  /** What is wrong. */
  readonly kind: FindingKind;
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** Id of the message, where there is one. */
  readonly id: string | undefined;
  /** When the message was created, or handled: ISO 8601, UTC. Undefined of a row of a query. */
  readonly at: string | undefined;
  /** The consumer that is meant. */
  readonly consumer: string | undefined;
  /** What is wrong, in plain words. */
  readonly problem: string;
  /** What to do about it. */
  readonly advice: string;
}

/** What differs from one finding of a kind to the next. */
interface Details {
  readonly id?: string;
  readonly atMs?: number;
  readonly consumer?: string;
  /** In front of the problem. */
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
