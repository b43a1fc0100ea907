/**
 * NATS JetStream: pulls and single acknowledgments on the core connection. Neither `fetch` nor
 * `consume` of the JetStream client tells when the server has sent the last message.
 */
import { randomUUID } from "node:crypto";
import { closeQuietly } from "../../runtime/deadline.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import type { DeliveredMessage } from "../message.ts";
import { type ConsumeOptions, type OwnKinds, type Park, type Unhandled, workSettings } from "../options.ts";
import { type Opened, reopening } from "../reopening.ts";
import { createWork, type Verdict, type Work } from "../work.ts";
import {
  ASK_TIMEOUT_MS,
  askForConsumer,
  type ConsumerAddress,
  type ConsumerFacts,
  type NatsConsumeConnection,
} from "./connection.ts";
import { createKeeping, type Keeping } from "./keeping.ts";
import { type NatsDelivered, natsMessage, rawOf, type WireMessage } from "./message.ts";
import { type Pulling, startPulling } from "./pulling.ts";

/** Options of {@link consumeNats}. */
export interface NatsConsumeOptions<Tx = Transaction> extends ConsumeOptions<NatsDelivered, Tx> {
  /**
   * Opens a connection, such as `() => connect({ servers })`. Called again when the last one has
   * closed, after its own reconnects. The consumer closes it.
   */
  readonly connect: () => Promise<NatsConsumeConnection>;
  /** Stream to read. */
  readonly stream: string;
  /** Durable pull consumer of the stream, with explicit acks. It must exist. */
  readonly durable: string;
  /** JetStream domain. Default: the connection's. */
  readonly domain?: string | undefined;
  /** Prefix of the subjects for deliveries. Default `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /**
   * Messages in memory, including those being handled. Default: four times `concurrency`, so that
   * one slow key leaves room for others. `max_ack_pending` limits it.
   */
  readonly prefetch?: number | undefined;
  /** Time for `connect` and JetStream's first answer, in ms. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * `redeliver`, the default: again after `retry.maxMs`; in its last delivery (`max_deliver`) a
   * message stays here until it is handled. `dead-letter`: terminated and never delivered again; a
   * stream whose retention is not by limits **drops** it.
   */
  readonly unhandled?: Unhandled | Park<NatsDelivered> | undefined;
}

const KINDS: OwnKinds<NatsConsumeOptions> = {
  connect: "function",
  stream: "string",
  durable: "string",
  domain: "string",
  inboxPrefix: "string",
  prefetch: "number",
  connectTimeoutMs: "number",
};

interface Link extends Opened {
  readonly connection: NatsConsumeConnection;
  readonly pulling: Pulling;
}

interface LinkParts extends Pick<Parameters<typeof startPulling>[0], "address" | "clock" | "logger" | "room"> {
  readonly connect: NatsConsumeOptions["connect"];
  readonly inboxPrefix: string;
  readonly pauseMs: number;
  readonly work: Work<NatsDelivered>;
  readonly lastOnes: Set<LastOne>;
  readonly tellOfLimit: (facts: ConsumerFacts) => void;
}

interface LastOne {
  readonly raw: NatsDelivered;
  message?: DeliveredMessage;
}

/**
 * Handles the messages of a durable consumer, each once, and acknowledges each after its commit.
 * Resolves when it pulls. Throws `ConfigurationError`, `BrokerError` if stream or consumer does not
 * exist or does not use explicit acks, and the error of the first `connect`. A connection lost
 * later is reopened.
 */
export async function consumeNats<Tx = Transaction>(options: NatsConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeNats", options, KINDS);
  const { connect, inboxPrefix = "_INBOX" } = options;
  const address = addressOf(options);
  const work = createWork(settings);
  const { clock, logger, openWithinMs, pauseMs, prefetch: room } = settings;
  const lastOnes = new Set<LastOne>();
  let isTold = false;
  const tellOfLimit = ({ maxDeliveries }: ConsumerFacts): void => {
    if (isTold || maxDeliveries === Number.POSITIVE_INFINITY) return;
    isTold = true;
    logger.warn("a process that dies loses what is in its last delivery: let max_deliver be without limit", {
      stream: address.stream,
      durable: address.durable,
      maxDeliveries,
    });
  };
  const links = await reopening({
    open: () => openLink({ tellOfLimit, connect, address, inboxPrefix, room, clock, logger, pauseMs, work, lastOnes }),
    discard: ({ connection }) => closeQuietly(connection.close()),
    openWithinMs,
    closing: work.closing,
    clock,
    logger,
    what: `NATS consumer ${address.durable} of the stream ${address.stream}`,
  });
  return consumptionOf(async () => {
    const { connection, pulling } = links.current();
    // A message that arrives now may be in its last delivery and must be handled.
    const closed = await work.drain(pulling.quiet);
    if (closed.drained) await pulling.over;
    for (const one of lastOnes) tellOfLoss(one, logger);
    await closeQuietly(connection.flush());
    await closeQuietly(connection.close());
    return closed;
  });
}

function addressOf({
  connect,
  domain,
  durable,
  stream,
}: Pick<NatsConsumeOptions, "connect" | "domain" | "durable" | "stream">): ConsumerAddress {
  const names = [stream, durable, domain ?? "local"];
  // Each is a part of a subject.
  if (typeof connect !== "function" || names.some((name) => typeof name !== "string" || !/^[^\s.*>/\\]+$/.test(name))) {
    throw new ConfigurationError(
      'consumeNats takes { connect: () => connect({ servers }), stream: "ORDERS", durable: "points" }; names hold no blank, dot, * or >',
    );
  }
  return { stream, durable, apiPrefix: domain === undefined ? "$JS.API" : `$JS.${domain}.API` };
}

async function openLink(parts: LinkParts): Promise<Link> {
  const { address, clock, connect, inboxPrefix, logger, room, work } = parts;
  const connection = await connect();
  try {
    const facts = await askForConsumer(connection, address);
    parts.tellOfLimit(facts);
    const keeping = createKeeping({ connection, clock, ackWaitMs: facts.ackWaitMs });
    const pulling: Pulling = startPulling({
      connection,
      address,
      room,
      clock,
      logger,
      closing: work.closing,
      inbox: `${inboxPrefix}.${randomUUID()}`,
      take: (message) => take({ ...parts, connection, facts, keeping, message, quiet: pulling.quiet }),
    });
    const ended = connection.closed().finally(() => keeping.close());
    return { connection, pulling, ended };
  } catch (error) {
    await closeQuietly(connection.close());
    throw error;
  }
}

interface Taken extends Pick<LinkParts, "pauseMs" | "work" | "lastOnes"> {
  readonly connection: NatsConsumeConnection;
  readonly facts: ConsumerFacts;
  readonly keeping: Keeping;
  readonly message: WireMessage;
  readonly quiet: Promise<void>;
}

async function take({ connection, facts, keeping, lastOnes, message, quiet, ...parts }: Taken): Promise<unknown> {
  const { pauseMs, work } = parts;
  const raw = rawOf(message);
  if (raw === undefined) return undefined;
  const { reply = "" } = message;
  const isLost = (): boolean => keeping.isLost(reply);
  const isLast = raw.info.deliveryCount >= facts.maxDeliveries;
  const one: LastOne = { raw };
  if (isLast) lastOnes.add(one);
  keeping.keep(reply);

  async function tell(verdict: Verdict): Promise<void> {
    const isOurs = !isLost();
    keeping.letGo(reply);
    if (verdict !== "stopped") lastOnes.delete(one);
    if (verdict === "handled") await answered("+ACK");
    else if (verdict === "dead-letter") await answered("+TERM");
    else if (verdict === "redeliver") connection.publish(reply, pauseMs > 0 ? `-NAK ${delayOf(pauseMs)}` : "-NAK");
    else if (isOurs) {
      // Earlier it would come back to us and count as another delivery.
      await quiet;
      connection.publish(reply, "-NAK");
    }
  }

  /** The server's answer confirms it; rejects without one. */
  async function answered(words: string): Promise<void> {
    const asked = connection.request(reply, words, { timeout: ASK_TIMEOUT_MS });
    // The server has given it up, so losing this is harmless; a work queue drops it on receiving
    // it.
    await (isLast ? closeQuietly(asked, ASK_TIMEOUT_MS) : asked);
  }

  return await work.handle({
    raw,
    read: (identity) => (one.message = natsMessage(raw, identity)),
    // The server would never deliver it again, to any consumer, without notice.
    stays: isLast ? "always" : undefined,
    isLast,
    isOver: () => !isLast && isLost(),
    tell,
  });
}

function tellOfLoss({ message, raw }: LastOne, logger: Logger): void {
  const { stream, streamSequence } = raw.info;
  logger.error("a message was not handled in its last delivery, and the server brings it no more", {
    stream,
    streamSequence,
    type: message?.type,
    key: message?.key,
  });
}

function delayOf(ms: number): string {
  return JSON.stringify({ delay: ms * 1_000_000 });
}
