/** The message queue stored in SQL. */
import type { ReceivedMessage } from "../identity.ts";
import { identityIn, MissingIdentityError } from "./headers.ts";

/** A message as a handler of `queue.consume` gets it. */
export interface QueuedIdentity {
  /** Message type, where it has one. */
  readonly type: string | undefined;
  /** Business key, where it has one. */
  readonly key: string | undefined;
  /** Id in the queue. */
  readonly id: string;
  /** Topic that it was appended to. */
  readonly topic: string;
  /** Of the producer. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Identity of a message of the queue: its type and key, whether a relay or `queue.append` has put
 * it there. `attempt` is that of the relay, not that of the consumer. Throws `MissingIdentityError`
 * for one without type or key.
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
