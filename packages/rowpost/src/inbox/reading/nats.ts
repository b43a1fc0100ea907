/** NATS: messages of its clients. */
import { decodeNatsHeaders } from "../../brokers/nats/carry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

/** A message of a JetStream consumer, or of a plain subscription. */
export interface NatsMessage {
  /** As the client gives them. */
  readonly headers?: Parameters<typeof decodeNatsHeaders>[0];
  /** Subject of the message. */
  readonly subject?: string | undefined;
  /** Set for a message of JetStream. */
  readonly info?: { readonly stream: string; readonly streamSequence: number } | undefined;
}

/**
 * Identity of a message of `@nats-io/jetstream`, `nats` and plain subscriptions. `id` is
 * `stream:sequence`, as in the receipt, `topic` the subject. Throws `MissingIdentityError`.
 */
export function fromNats(message: NatsMessage): ReceivedMessage {
  const { headers, info, subject } = message;
  return identityIn("NATS", decodeNatsHeaders(headers), {
    topic: subject,
    id: info === undefined ? undefined : `${info.stream}:${info.streamSequence}`,
  });
}
