/** A message as its handler gets it. */
import { decodeBody, decodeHeaders } from "../../message/decode.ts";
import { queueIdMs } from "../../message/queue-id.ts";
import type { StoredQueueMessage } from "../store.ts";

/** A message as a handler gets it. */
export interface ConsumedMessage<Body = unknown> {
  /** Topic of the message. */
  readonly topic: string;
  /** Decimal string; within a partition ids grow in commit order. */
  readonly id: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** Business key, if any. */
  readonly key: string | undefined;
  /** Message type, if any. */
  readonly type: string | undefined;
  /** JSON value, text or bytes, as appended. */
  readonly body: Body;
  /** Media type of the body. */
  readonly contentType: string;
  /** Headers of the producer; {} when there are none. */
  readonly headers: Readonly<Record<string, string>>;
  /** Messages with the same key are handled one after the other. */
  readonly orderingKey: string | undefined;
  /** Time of the append, by the database's clock. */
  readonly sentAt: Date;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
}

/** One delivery, for a handler that tracks its end. */
export interface HandedOut {
  /** Called once: the outcome is written, or never will be because the partition is lost. */
  over?: (isWritten: boolean) => void;
}

/** Returns the message, or the reason why its row is unreadable. */
export function consumedMessage(
  topic: string,
  row: StoredQueueMessage,
  attempt: number,
): ConsumedMessage | { readonly broken: string } {
  const body = decodeBody(row, { hasContentType: true });
  if (body.broken !== undefined) return body;
  const headers = decodeHeaders(row.headers);
  if (headers.broken !== undefined) return headers;
  return {
    topic,
    id: row.id,
    partition: row.partition,
    key: row.key ?? undefined,
    type: row.type ?? undefined,
    body: body.value,
    contentType: body.contentType,
    headers: headers.headers,
    orderingKey: row.orderingKey ?? undefined,
    sentAt: new Date(queueIdMs(row.id)),
    attempt,
  };
}

/** A message as `queue.tail` shows it, outside any consumption. */
export interface TailedMessage extends Omit<ConsumedMessage, "attempt"> {
  /** Why a handler could not read the row; the body is then the raw text of the row. */
  readonly broken: string | undefined;
}

export function tailedMessage(topic: string, row: StoredQueueMessage): TailedMessage {
  const read = consumedMessage(topic, row, 1);
  if (!("broken" in read)) {
    const { attempt: _attempt, ...message } = read;
    return { ...message, broken: undefined };
  }
  const { id, partition } = row;
  return {
    topic,
    id,
    partition,
    body: row.body,
    headers: {},
    sentAt: new Date(queueIdMs(id)),
    key: row.key ?? undefined,
    type: row.type ?? undefined,
    contentType: row.contentType ?? "",
    orderingKey: row.orderingKey ?? undefined,
    broken: read.broken,
  };
}
