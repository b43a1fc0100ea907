import { loadedPeer } from "../settings/peer.ts";

/**
 * A connection of amqplib 0.10.3 or newer, as `amqplib.connect` resolves to. One that recovers by
 * itself works too.
 */
export interface RabbitmqConnection {
  /** Opens a channel with confirms. */
  createConfirmChannel(): Promise<AmqpChannel>;
  /** For `close` and `error`. */
  on(event: string, listener: (...given: never[]) => void): unknown;
  /** Removes a listener. */
  off(event: string, listener: (...given: unknown[]) => void): unknown;
}

export interface AmqpChannel {
  /** False: the buffer is full until `drain`. Throws if nothing was written. */
  publish(exchange: string, routingKey: string, content: Buffer, options: AmqpProperties): boolean;
  checkExchange(exchange: string): Promise<unknown>;
  /** Takes effect after earlier messages and waits for the server's answer without limit. */
  close(): Promise<void>;
  on(event: string, listener: (...given: never[]) => void): unknown;
}

export interface AmqpSocket {
  readonly writableNeedDrain: boolean;
  cork(): void;
  uncork(): void;
  prependOnceListener(event: "drain", listener: () => void): unknown;
}

export interface AmqpProperties {
  readonly mandatory: true;
  readonly persistent: true;
  readonly messageId: string;
  type?: string;
  readonly contentType: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Events `ack` and `nack`; with `multiple` also for all messages before it. */
export interface AmqpConfirm {
  readonly deliveryTag: number;
  readonly multiple: boolean;
}

/** Event `return`: no queue took the message. It comes before the message's `ack`. */
export interface AmqpReturn {
  readonly fields: { readonly replyCode: number; readonly replyText: string; readonly routingKey: string };
  readonly properties: { readonly messageId?: string; readonly headers?: Readonly<Record<string, unknown>> };
}

/** Undocumented parts of a connection or channel, which may be missing. */
export interface AmqpInside {
  readonly connection?: { readonly frameMax?: unknown; readonly blocked?: unknown; readonly stream?: unknown };
}

/** `amqplib.connect`. The signal in its socket options ends the socket in any state. */
export type AmqpConnect = (
  server: Readonly<Record<string, unknown>>,
  socket: Readonly<Record<string, unknown>>,
) => Promise<RabbitmqConnection & { close(): Promise<void> }>;

export function loadAmqp(): Promise<{ readonly connect: AmqpConnect }> {
  return loadedPeer(import("amqplib"), "amqplib", { neededFor: "The RabbitMQ broker", range: ">=0.10.3 <3" });
}
