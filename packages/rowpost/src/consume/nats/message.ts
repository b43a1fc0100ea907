import { decodeNatsHeaders } from "../../brokers/nats/carry.ts";
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { fromNats } from "../../inbox/reading/nats.ts";
import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A message as it was delivered. */
export interface NatsDelivered {
  /** Published subject: the topic, unless it was mapped. */
  readonly subject: string;
  /** Body. */
  readonly data: Uint8Array;
  /** Headers as the client has them. */
  readonly headers?: WireHeaders | undefined;
  /** Position in the stream, and number of the delivery. */
  readonly info: {
    readonly stream: string;
    readonly streamSequence: number;
    /** 1 for the first. */
    readonly deliveryCount: number;
  };
}

/** Headers of the client, including the status of the server's own messages. */
export type WireHeaders = Iterable<readonly [string, string | readonly string[]]> & {
  readonly code?: number;
  readonly description?: string;
};

export interface WireMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply?: string | undefined;
  readonly headers?: WireHeaders | undefined;
}

/**
 * Undefined if it is not from a consumer. The reply subject has its position, in an older form and
 * one with domain and account: `$JS.ACK.[domain.account.]stream.consumer.count.sequence.…`.
 */
export function rawOf({ data, headers, reply = "", subject }: WireMessage): NatsDelivered | undefined {
  const tokens = reply.split(".");
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || tokens.length < 9) return undefined;
  const [stream = "", , count, sequence] = tokens.slice(tokens.length === 9 ? 2 : 4);
  const info = { stream, streamSequence: Number(sequence), deliveryCount: Number(count) };
  return { subject, data, headers, info };
}

/** Throws `MissingIdentityError`. */
export function natsMessage(raw: NatsDelivered, identity: ReceivedMessage = fromNats(raw)): DeliveredMessage {
  const headers = decodeNatsHeaders(raw.headers);
  return deliveredMessage({
    identity,
    headers,
    body: raw.data,
    orderingKey: headers[HEADER_ORDERING_KEY],
  });
}
