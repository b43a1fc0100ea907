/** RabbitMQ through amqplib: our own channel on each connection, with single acknowledgments. */
import { untilAborted } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import { ConfigurationError, RowpostError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import {
  type ConsumeOptions,
  type OwnKinds,
  type Park,
  type Unhandled,
  type WorkSettings,
  workSettings,
} from "../options.ts";
import { type Opened, reopening } from "../reopening.ts";
import { createWork, type Verdict, type Work } from "../work.ts";
import { createAlone } from "./alone.ts";
import { createLimit, type Limit } from "./limit.ts";
import { type Channel, type RabbitmqDelivered, rabbitmqMessage, returnsOf } from "./message.ts";

/** The result of `amqplib.connect`, with the methods used. */
export interface RabbitmqConsumeConnection {
  /** Called once. */
  createChannel(): Promise<unknown>;
  /** For `close` and `error`. */
  on(event: string, listener: (...given: never[]) => void): unknown;
  /** Ends it. */
  close(): Promise<void>;
  /** Server properties, including the version. */
  readonly connection?: { readonly serverProperties?: object | undefined } | undefined;
}

/** Options of {@link consumeRabbitmq}. */
export interface RabbitmqConsumeOptions<Tx = Transaction> extends ConsumeOptions<RabbitmqDelivered, Tx> {
  /**
   * Opens a connection, such as `() => amqplib.connect(url)`. Called again whenever the last one
   * has ended. The consumer closes it.
   */
  readonly connect: () => Promise<RabbitmqConsumeConnection>;
  /** Queue to read. It must exist. */
  readonly queue: string;
  /**
   * Unacknowledged messages in memory, including those being handled. Default: four times
   * `concurrency`, so that one slow key leaves room for others.
   */
  readonly prefetch?: number | undefined;
  /** Time for `connect` and the first answers of the server, in ms. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * Returns after which the quorum queue gives a message up. RabbitMQ does not report it, so set it
   * if a declaration or a policy has another limit; `Infinity` for none. Default 20, as in RabbitMQ
   * 4.
   */
  readonly deliveryLimit?: number | undefined;
  /**
   * True: the queue has a dead letter exchange, so messages it gives up are not dropped and need no
   * warning. Default: true with `unhandled: "dead-letter"`.
   */
  readonly deadLetterExchange?: boolean | undefined;
  /**
   * `redeliver`, the default: back into the queue after a pause of `retry.maxMs`. A message that a
   * quorum queue has taken back before stays here and is retried after that pause until it is
   * handled, because returns count towards the delivery limit. `dead-letter`: to the queue's dead
   * letter exchange; a queue without one **drops** it.
   */
  readonly unhandled?: Unhandled | Park<RabbitmqDelivered> | undefined;
}

const KINDS: OwnKinds<RabbitmqConsumeOptions> = {
  connect: "function",
  queue: "string",
  prefetch: "number",
  connectTimeoutMs: "number",
  deliveryLimit: "number",
  deadLetterExchange: "boolean",
};

/** RabbitMQ 4's default for a quorum queue. */
const DELIVERY_LIMIT = 20;
const LOST = "the connection to RabbitMQ ended";
/** A server under load answers only after everything it was sent before. */
const CHANNEL_CLOSE_MS = 5_000;

interface Link extends Opened {
  readonly channel: Channel;
  readonly connection: RabbitmqConsumeConnection;
  readonly consumerTag: string;
}

/**
 * Handles the messages of a queue, each once, and acknowledges each after its commit. Resolves when
 * the server delivers. Throws `ConfigurationError`, and the errors of the first `connect` and of
 * the server. A connection lost later is reopened.
 */
export async function consumeRabbitmq<Tx = Transaction>(options: RabbitmqConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeRabbitmq", options, KINDS, {
    source: options.queue,
    mostPrefetch: 65_535,
  });
  const { connect, queue } = options;
  if (typeof connect !== "function" || typeof queue !== "string" || queue === "") {
    throw new ConfigurationError("consumeRabbitmq takes { connect: () => amqplib.connect(url), queue }");
  }
  const { deliveryLimit: given } = options;
  const deliveryLimit =
    given === Infinity ? Infinity : wholeNumber("consumeRabbitmq: deliveryLimit", given ?? DELIVERY_LIMIT, 0);
  const { clock, logger, openWithinMs, unhandled } = settings;
  const hasDeadLetters = options.deadLetterExchange ?? unhandled === "dead-letter";
  const limit = createLimit({ queue, deliveryLimit, isGiven: given !== undefined, hasDeadLetters, logger });
  const work = createWork(settings);
  const links = await reopening({
    discard: ({ connection }) => closeQuietly(connection.close()),
    open: () => openLink({ ...settings, connect, queue, deliveryLimit, limit, work }),
    openWithinMs,
    closing: work.closing,
    clock,
    logger,
    what: `RabbitMQ queue ${queue}`,
  });
  return consumptionOf(async () => {
    const { channel, connection, consumerTag } = links.current();
    // A message that arrives now may be in its last delivery, and is tried.
    const closed = await work.drain(closeQuietly(channel.cancel(consumerTag)));
    limit.tellOfReturns();
    // After the acknowledgments: the server has read them when it answers.
    await closeQuietly(channel.close(), CHANNEL_CLOSE_MS);
    await closeQuietly(connection.close());
    return closed;
  });
}

interface LinkParts extends Pick<WorkSettings<RabbitmqDelivered>, "clock" | "logger" | "pauseMs" | "prefetch"> {
  readonly connect: RabbitmqConsumeOptions["connect"];
  readonly queue: string;
  readonly deliveryLimit: number;
  readonly limit: Limit;
  readonly work: Work<RabbitmqDelivered>;
}

async function openLink(parts: LinkParts): Promise<Link> {
  const { limit, queue, work } = parts;
  const connection = await parts.connect();
  const over = new AbortController();
  const end = (reason: unknown): void => over.abort(reason ?? new RowpostError("CONNECTION_LOST", LOST));
  const ended = untilAborted(over.signal).then((): unknown => over.signal.reason);
  for (const event of ["error", "close"]) connection.on(event, (reason?: unknown) => end(reason));
  try {
    const channel = (await connection.createChannel()) as Channel;
    for (const event of ["error", "close"]) channel.on(event, (reason?: unknown) => end(reason));
    const { serverProperties = {} } = connection.connection ?? {};
    limit.opened((serverProperties as { readonly version?: unknown }).version);
    const takeOne = (message: RabbitmqDelivered): Promise<unknown> =>
      take({ ...parts, channel, message, ended: over.signal });
    const isAlone = createAlone({ ...parts, channel, closing: work.closing, ended: over.signal, take: takeOne });
    await channel.prefetch(parts.prefetch);
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message === null)
        end(new RowpostError("CANCELLED", `the server has cancelled the consumer of ${queue}: was the queue deleted?`));
      else if (!isAlone(message)) void takeOne(message);
    });
    void ended.then(async () => {
      limit.tellOfReturns();
      // A connection whose consumer was cancelled or whose channel ended would stay open beside the
      // next one.
      await closeQuietly(connection.close());
    });
    return { channel, connection, consumerTag, ended };
  } catch (error) {
    await closeQuietly(connection.close());
    throw error;
  }
}

interface Taken extends Pick<LinkParts, "clock" | "limit" | "pauseMs" | "work"> {
  readonly channel: Channel;
  readonly message: RabbitmqDelivered;
  readonly ended: AbortSignal;
}

async function take({ channel, clock, ended, limit, message, pauseMs, work }: Taken): Promise<void> {
  async function tell(verdict: Verdict): Promise<void> {
    // It goes back when the channel ends; earlier, the server would deliver it to us again.
    if (verdict === "stopped") return;
    // Without the pause it would be retried as fast as the server can deliver.
    if (verdict === "redeliver") await clock.sleep(pauseMs, work.closing);
    // Throws on an ended channel: the server has already requeued the message.
    if (verdict === "handled") channel.ack(message);
    else channel.nack(message, false, verdict !== "dead-letter");
    limit.settled(message);
  }

  let survived = (): void => undefined;
  const once = new Promise<void>((resolve) => {
    survived = resolve;
  });
  const isLast = limit.isLast(message);
  const settled = work.handle({
    raw: message,
    read: (identity) => rabbitmqMessage(message, identity),
    // The server would count another return, and finally drop it.
    stays: isLast || returnsOf(message) > 0 ? "aside" : undefined,
    isLast,
    isOver: () => ended.aborted,
    tried: survived,
    tell,
  });
  await Promise.race([once, settled]);
}
