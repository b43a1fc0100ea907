/** RabbitMQ through amqplib: a channel of our own on each connection, acknowledged one by one. */
import { textOf } from "../inbox/reading/headers.ts";
import { fromRabbitmq } from "../inbox/reading/rabbitmq.ts";
import { HEADER_ORDERING_KEY } from "../message/message.ts";
import { closeQuietly } from "../runtime/deadline.ts";
import { ConfigurationError, RowpostError } from "../runtime/errors.ts";
import { wholeNumber } from "../runtime/whole-number.ts";
import type { Transaction } from "../transactions/executor.ts";
import { type Consumption, consumptionOf } from "./consumption.ts";
import { type DeliveredMessage, deliveredMessage } from "./message.ts";
import { type ConsumeOptions, type OwnKinds, type Park, type Unhandled, workSettings } from "./options.ts";
import { type Opened, reopening } from "./reopening.ts";
import { createWork, type Verdict, type Work } from "./work.ts";

/** What `amqplib.connect` resolves to: what is called of it. */
export interface RabbitmqConsumeConnection {
  /** Called once. */
  createChannel(): Promise<unknown>;
  /** For `close` and `error`. */
  on(event: string, listener: (...given: never[]) => void): unknown;
  /** Ends it. */
  close(): Promise<void>;
}

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

/** Options of {@link consumeRabbitmq}. */
export interface RabbitmqConsumeOptions<Tx = Transaction> extends ConsumeOptions<RabbitmqDelivered, Tx> {
  /**
   * Opens a connection, such as `() => amqplib.connect(url)`: called again whenever the last one
   * has ended. It is closed with the consumer.
   */
  readonly connect: () => Promise<RabbitmqConsumeConnection>;
  /** Queue to read; it has to be there. */
  readonly queue: string;
  /**
   * Messages that the server hands over before they are acknowledged, those whose handlers run
   * included: what is in memory. Default: four times `concurrency`, so that one key that is slow
   * leaves room for others.
   */
  readonly prefetch?: number | undefined;
  /** For `connect` and the first answers of the server, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * `redeliver`, the default: back into the queue, after a pause of `retry.maxMs`; a quorum queue
   * counts it towards its delivery limit. `dead-letter`: to the queue's dead letter exchange; a
   * queue that has none **drops** it.
   */
  readonly unhandled?: Unhandled | Park<RabbitmqDelivered> | undefined;
}

const KINDS: OwnKinds<RabbitmqConsumeOptions> = {
  connect: "function",
  queue: "string",
  prefetch: "number",
  connectTimeoutMs: "number",
  unhandled: ["string", "function"],
};

/** A server under load answers behind all that it was sent before. */
const CHANNEL_CLOSE_MS = 5_000;

interface Channel {
  prefetch(count: number): Promise<unknown>;
  consume(queue: string, take: (message: RabbitmqDelivered | null) => void): Promise<{ readonly consumerTag: string }>;
  cancel(consumerTag: string): Promise<unknown>;
  /** These two throw on a channel that has ended. */
  ack(message: RabbitmqDelivered): void;
  nack(message: RabbitmqDelivered, upTo: boolean, requeue: boolean): void;
  close(): Promise<void>;
  on(event: string, listener: (...given: never[]) => void): unknown;
}

interface Link extends Opened {
  readonly channel: Channel;
  readonly connection: RabbitmqConsumeConnection;
  readonly consumerTag: string;
}

/**
 * Handles the messages of a queue, each once, and acknowledges each after its commit. Resolves when
 * the server delivers. Throws `ConfigurationError`, and what `connect` and the server say to the
 * first attempt; a connection that is lost later is opened again.
 */
export async function consumeRabbitmq<Tx = Transaction>(options: RabbitmqConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeRabbitmq", options, KINDS);
  const { connect, queue } = options;
  if (typeof connect !== "function" || typeof queue !== "string" || queue === "") {
    throw new ConfigurationError("consumeRabbitmq takes { connect: () => amqplib.connect(url), queue }");
  }
  const prefetch = wholeNumber("consumeRabbitmq: prefetch", options.prefetch ?? 4 * settings.concurrency, 1, 65_535);
  const openWithinMs = wholeNumber("consumeRabbitmq: connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1);
  const work = createWork(settings);
  const { clock, logger, pauseMs } = settings;

  /** A message that comes again at once would be tried as fast as the server can bring it. */
  async function tell(channel: Channel, message: RabbitmqDelivered, verdict: Verdict): Promise<void> {
    // It goes back when the channel ends. Before that the server would bring it to us again.
    if (verdict === "stopped") return;
    if (verdict === "redeliver") await clock.sleep(pauseMs, work.closing);
    // Throws where the channel has ended: the server has put the message back already.
    if (verdict === "handled") channel.ack(message);
    else channel.nack(message, false, verdict !== "dead-letter");
  }

  const links = await reopening({
    discard: ({ connection }) => closeQuietly(connection.close()),
    open: () => openLink({ connect, queue, prefetch, work, tell }),
    openWithinMs,
    ...{ closing: work.closing, clock, logger, what: `RabbitMQ queue ${queue}` },
  });
  return consumptionOf(async () => {
    const drained = work.drain();
    const { channel, connection, consumerTag } = links.current();
    await closeQuietly(channel.cancel(consumerTag));
    const closed = await drained;
    // Behind the acknowledgments: the server has read them when it answers.
    await closeQuietly(channel.close(), CHANNEL_CLOSE_MS);
    await closeQuietly(connection.close());
    return closed;
  });
}

interface LinkParts {
  readonly connect: RabbitmqConsumeOptions["connect"];
  readonly queue: string;
  readonly prefetch: number;
  readonly work: Work<RabbitmqDelivered>;
  readonly tell: (channel: Channel, message: RabbitmqDelivered, verdict: Verdict) => Promise<void>;
}

async function openLink({ connect, prefetch, queue, tell, work }: LinkParts): Promise<Link> {
  const connection = await connect();
  let isOver = false;
  let end = (_reason: unknown): void => undefined;
  const ended = new Promise<unknown>((resolve) => {
    end = (reason) => {
      isOver = true;
      resolve(reason);
    };
  });
  for (const event of ["error", "close"]) connection.on(event, (reason?: unknown) => end(reason));
  try {
    const channel = (await connection.createChannel()) as Channel;
    for (const event of ["error", "close"]) channel.on(event, (reason?: unknown) => end(reason));
    await channel.prefetch(prefetch);
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message === null) {
        end(new RowpostError("CANCELLED", `the server has cancelled the consumer of ${queue}: was the queue deleted?`));
        return;
      }
      void work.handle({
        raw: message,
        read: (identity) => rabbitmqMessage(message, identity),
        isOver: () => isOver,
        tell: (verdict) => tell(channel, message, verdict),
      });
    });
    // One that was cancelled, or whose channel ended, would stay open beside the next one.
    void ended.then(() => closeQuietly(connection.close()));
    return { channel, connection, consumerTag, ended };
  } catch (error) {
    await closeQuietly(connection.close());
    throw error;
  }
}

/** Throws `MissingIdentityError`. */
function rabbitmqMessage(message: RabbitmqDelivered, identity = fromRabbitmq(message)): DeliveredMessage {
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
