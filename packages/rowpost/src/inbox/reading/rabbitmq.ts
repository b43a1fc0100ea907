/** RabbitMQ: messages of amqplib. */
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

/** A message of AMQP 0-9-1. */
export interface RabbitmqMessage {
  /** Its headers hold the identity. */
  readonly properties: {
    readonly headers?: Readonly<Record<string, unknown>> | null | undefined;
    readonly messageId?: unknown;
  };
}

/**
 * Identity of a message of amqplib's `channel.consume` and `channel.get`. `id` is the property
 * message-id. Throws `MissingIdentityError`.
 */
export function fromRabbitmq({ properties }: RabbitmqMessage): ReceivedMessage {
  const { headers, messageId } = properties;
  return identityIn("RabbitMQ", headers ?? {}, { id: typeof messageId === "string" ? messageId : undefined });
}
