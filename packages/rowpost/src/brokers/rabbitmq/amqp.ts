/** The part of amqplib that is used, by its shape, and loading it. */
import { loadedPeer } from "../settings/peer.ts";

/** As `amqplib.connect` of amqplib 0.10.3 or newer resolves to; a recovering one will do. */
export interface RabbitmqConnection {
  /** Opens a channel with confirms. */
  createConfirmChannel(): Promise<AmqpChannel>;
  /** For `close` and `error`. */
  on(event: string, listener: (...given: never[]) => void): unknown;
  /** Ends what `on` began. */
  off(event: string, listener: (...given: unknown[]) => void): unknown;
}

/** A channel of amqplib with confirms switched on. */
export interface AmqpChannel {
  /** False: its buffer is full until `drain`. Throws, with nothing written. */
  publish(exchange: string, routingKey: string, content: Buffer, options: AmqpProperties): boolean;
  checkExchange(exchange: string): Promise<unknown>;
  /** After what was published before, when the server answers, however long that takes. */
  close(): Promise<void>;
  on(event: string, listener: (...given: never[]) => void): unknown;
}

/** The part of a socket that is used. */
export interface AmqpSocket {
  readonly writableNeedDrain: boolean;
  cork(): void;
  uncork(): void;
  prependOnceListener(event: "drain", listener: () => void): unknown;
}

/** What goes with a body. */
export interface AmqpProperties {
  readonly mandatory: true;
  readonly persistent: true;
  readonly messageId: string;
  type?: string;
  readonly contentType: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  /** Only lent: read before `publish` returns. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Events `ack` and `nack`; with `multiple` also of all messages before it. */
export interface AmqpConfirm {
  readonly deliveryTag: number;
  readonly multiple: boolean;
}

/** Event `return`: no queue took the message. It comes before the message's `ack`. */
export interface AmqpReturn {
  readonly fields: { readonly replyCode: number; readonly replyText: string; readonly routingKey: string };
  readonly properties: { readonly messageId?: string; readonly headers?: Readonly<Record<string, unknown>> };
}

/** Inside a connection or channel, if it is there: their documented types show less. */
export interface AmqpInside {
  readonly connection?: { readonly frameMax?: unknown; readonly blocked?: unknown; readonly stream?: unknown };
}

/** `amqplib.connect`. The signal in its socket options ends the socket, whatever state it is in. */
export type AmqpConnect = (
  server: Readonly<Record<string, unknown>>,
  socket: Readonly<Record<string, unknown>>,
) => Promise<RabbitmqConnection & { close(): Promise<void> }>;

/** Loads amqplib. Rejects with `MissingPeerError`. */
export function loadAmqp(): Promise<{ readonly connect: AmqpConnect }> {
  return loadedPeer(import("amqplib"), "amqplib", { neededFor: "The RabbitMQ broker", range: ">=0.10.3 <3" });
}
