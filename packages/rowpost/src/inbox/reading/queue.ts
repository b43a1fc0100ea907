/** Messages of rowpost's queue. */
import type { ReceivedMessage } from "../identity.ts";
import { identityIn, MissingIdentityError } from "./headers.ts";

/** A message as a handler of `queue.consume` gets it. */
export interface QueuedIdentity {
  /** Message type, if any. */
  readonly type: string | undefined;
  /** Business key, if any. */
  readonly key: string | undefined;
  /** Id in the queue. */
  readonly id: string;
  /** Topic of the message. */
  readonly topic: string;
  /** Headers of the producer. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Identity of a message of the queue: its type and key, whether from a relay or `queue.append`.
 * `attempt` is the relay's, not the consumer's. Throws `MissingIdentityError` without type or key.
 */
export function fromQueue({ headers, id, key, topic, type }: QueuedIdentity): ReceivedMessage {
  const missing = Object.entries({ type, key }).filter(([, value]) => value === undefined || value === "");
  if (missing.length > 0)
    throw new MissingIdentityError(
      "the queue",
      missing.map(([name]) => name),
    );
  return identityIn("the queue", { ...headers, "rowpost-type": type, "rowpost-key": key }, { id, topic });
}
