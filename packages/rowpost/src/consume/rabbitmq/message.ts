import type { ReceivedMessage } from "../../inbox/identity.ts";
import { textOf } from "../../inbox/reading/headers.ts";
import { fromRabbitmq } from "../../inbox/reading/rabbitmq.ts";
import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A message of amqplib. */
export interface RabbitmqDelivered {
  /** Body. */
  readonly content: Buffer;
  /** Delivery tag, routing and redelivery. */
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
  /** Both throw on an ended channel. */
  ack(message: RabbitmqDelivered): void;
  nack(message: RabbitmqDelivered, upTo: boolean, requeue: boolean): void;
  close(): Promise<void>;
  on(event: string, listener: (...given: never[]) => void): unknown;
}

/** Returns counted by a quorum queue; other queues do not count. */
export function returnsOf({ properties }: RabbitmqDelivered): number {
  const count = properties.headers?.[COUNT];
  return typeof count === "number" ? count : 0;
}

/** Undefined if a quorum queue has not taken it back, and in other queues. */
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
