/** NATS: messages as the clients give them. */
import { decodeNatsHeaders } from "../../brokers/nats/carry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

/** A message of a JetStream consumer, or of a plain subscription. */
export interface NatsMessage {
  /** As the client gives them. */
  readonly headers?: Parameters<typeof decodeNatsHeaders>[0];
  /** Subject that it came on. */
  readonly subject?: string | undefined;
  /** Where JetStream has it. */
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
