import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";

/** The message can never be sent as it is. */
export function refusal(code: string, reason: string): PublishFailed {
  return failed("message", code, reason, { retriable: false });
}

export interface Said {
  readonly code: string;
  readonly reason: string;
}

/** In amqplib's words: `Channel closed by server: 404 (NOT-FOUND) with message "NOT_FOUND - …"`. */
export function saidBy(error: unknown): Said {
  const message = error instanceof Error ? error.message : String(error);
  const [, name = "", words = ""] = /\d{3} \(([A-Z-]+)\) with message "(.*)"$/s.exec(message) ?? [];
  if (name !== "") {
    return { code: name.replaceAll("-", "_"), reason: words.replace(/\\"/g, '"').replace(/^[A-Z_]+ - /, "") };
  }
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "number") return { code: `AMQP_${code}`, reason: message };
  return { code: typeof code === "string" ? code : "CONNECTION_LOST", reason: message };
}

/** amqplib refuses to write because the connection or channel has ended or is closing. */
export function isOver(error: unknown): error is Error {
  return error instanceof Error && error.name === "IllegalOperationError";
}

export function isAboutExchange(said: Said): boolean {
  return said.code === "NOT_FOUND" || (said.code === "ACCESS_REFUSED" && !isAboutRoutingKey(said));
}

/** The user may write to the exchange, but not with this routing key. */
const TOPIC_REFUSED = "access to topic '";

export function isAboutRoutingKey({ code, reason }: Said): boolean {
  return code === "ACCESS_REFUSED" && reason.startsWith(TOPIC_REFUSED);
}

/** Which of these routing keys was refused. Undefined if unclear. */
export function refusedRoutingKey({ reason }: Said, routingKeys: readonly string[]): string | undefined {
  // RabbitMQ truncates the text at 255 bytes, and a long key with it.
  const words = reason.replace(/\.{3}$/, "");
  const named = routingKeys.filter((key) => {
    const expected = `${TOPIC_REFUSED}${key}' in exchange '`;
    return words.startsWith(expected) || expected.startsWith(words);
  });
  return new Set(named).size === 1 ? named[0] : undefined;
}

export function refusedByTopic(exchange: string, routingKey: string, { code, reason }: Said): PublishFailed {
  const advice = `grant the user the topic permission to write to ${exchange} with the routing key ${routingKey}`;
  return failed("destination", code, `${reason}; ${advice}`);
}

interface ChannelEnd {
  readonly exchange: string;
  readonly said: Said;
  /** The server confirmed a message on this channel before. */
  readonly proven: boolean;
}

/**
 * Failure of all messages of a channel that were not confirmed when it ended.
 *
 * The server reads messages in order and ends the channel at the one it cannot take, without naming
 * it: earlier ones may be stored, later ones are not. A missing exchange counts as missing from the
 * beginning only on a channel without any confirm.
 */
export function failureOfEnd({ exchange, said, proven }: ChannelEnd): PublishFailed {
  const { code, reason } = said;
  if (code === "NOT_FOUND" && !proven) return missingExchange(exchange, reason);
  if (code === "ACCESS_REFUSED" && !proven) return refusedExchange(exchange, reason);
  return unknownAfter(said);
}

/** The failure of a message that may have been stored before its channel ended. */
export function unknownAfter({ code, reason }: Said): PublishFailed {
  return failed("unknown", code, `${reason} (before the message was confirmed: it may be stored)`);
}

function missingExchange(exchange: string, reason: string): PublishFailed {
  const advice = `declare the exchange, or correct the mapping of topics (options exchange and route)`;
  const words = `the exchange ${exchange} of this topic does not exist: ${reason}; ${advice}`;
  return failed("message", "NOT_FOUND", words, { absent: "missing" });
}

function refusedExchange(exchange: string, reason: string): PublishFailed {
  const advice = `grant the user the permission to write to ${exchange === "" ? "the default exchange (amq.default)" : exchange}`;
  return failed("destination", "ACCESS_REFUSED", `${reason}; ${advice}`);
}

/** The failure of the one message that was too large for the server. */
export function tooLargeForServer(said: Said): PublishFailed {
  return refusal("BODY_TOO_LARGE", `${said.reason}; that is the server's max_message_size`);
}

/** The server found no queue for the message and dropped it. */
export function unroutable(topic: string, exchange: string, routingKey: string): PublishFailed {
  const words =
    exchange === ""
      ? `topic ${topic}: there is no queue ${routingKey}; declare it (durable), or map topics to exchanges with the options exchange or route`
      : `topic ${topic}: no queue is bound to exchange ${exchange} for routing key ${routingKey}; bind one`;
  return failed("message", "NO_ROUTE", words, { absent: "missing" });
}

/**
 * The queue is full and rejects (`x-overflow`), or cannot store now. Another queue may have taken
 * the message.
 */
export function refusedByQueue(topic: string): PublishFailed {
  const words = `topic ${topic}: a queue refused the message (nack): it is full with x-overflow=reject-publish, or cannot store for now`;
  return failed("destination", "NACKED", words);
}

/** A resource alarm: publishing is blocked until memory or disk is free again. */
export function blockedBy(reason: string): PublishFailed {
  const words = `RabbitMQ takes no messages for now: ${reason}`;
  return failed("connection", "CONNECTION_BLOCKED", words);
}

export function largestBodyIn(said: Said): { readonly sent: number; readonly largest: number } | undefined {
  const [, sent, largest] = /message size (\d+) is larger than (?:configured )?max size (\d+)/.exec(said.reason) ?? [];
  return sent === undefined || largest === undefined ? undefined : { sent: Number(sent), largest: Number(largest) };
}
