/** A message of RabbitMQ as amqplib hands it over, and what is called of the channel it came on. */
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { textOf } from "../../inbox/reading/headers.ts";
import { fromRabbitmq } from "../../inbox/reading/rabbitmq.ts";
import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A message as amqplib gives it. */
export interface RabbitmqDelivered {
  /** Body. */
  readonly content: Buffer;
  /** Where it comes from. */
  readonly fields: { readonly deliveryTag: number; readonly redelivered: boolean; readonly routingKey: string };
  /** Headers and properties. */
  readonly properties: {
    readonly headers?: Readonly<Record<string, unknown>> | null | undefined;
    readonly messageId?: unknown;
    readonly contentType?: unknown;
  };
}

export interface Channel {
  prefetch(count: number): Promise<unknown>;
  consume(queue: string, take: (message: RabbitmqDelivered | null) => void): Promise<{ readonly consumerTag: string }>;
  cancel(consumerTag: string): Promise<unknown>;
  /** These two throw on a channel that has ended. */
  ack(message: RabbitmqDelivered): void;
  nack(message: RabbitmqDelivered, upTo: boolean, requeue: boolean): void;
  close(): Promise<void>;
  on(event: string, listener: (...given: never[]) => void): unknown;
}

/** How often a quorum queue has taken it back; other queues do not count. */
export function returnsOf({ properties }: RabbitmqDelivered): number {
  const count = properties.headers?.[COUNT];
  return typeof count === "number" ? count : 0;
}

/** Undefined where a quorum queue has not taken it back, and of other queues. */
const COUNT = "x-delivery-count";

/** Throws `MissingIdentityError`. */
export function rabbitmqMessage(
  message: RabbitmqDelivered,
  identity: ReceivedMessage = fromRabbitmq(message),
): DeliveredMessage {
  const { content, properties } = message;
  const entries = Object.entries(properties.headers ?? {});
  return deliveredMessage({
    identity,
    headers: Object.fromEntries(entries.map(([name, value]) => [name, textOf(value) ?? String(value)])),
    body: content,
    contentType: textOf(properties.contentType),
    orderingKey: textOf(properties.headers?.[HEADER_ORDERING_KEY]),
  });
}
