/** A message as its handler gets it. */
import { decodeBody, decodeHeaders } from "../../message/decode.ts";
import { queueIdMs } from "../../message/queue-id.ts";
import type { StoredQueueMessage } from "../store.ts";

/** A message as a handler gets it. */
export interface ConsumedMessage<Body = unknown> {
  /** Topic that it was appended to. */
  readonly topic: string;
  /** Decimal text; grows with the order of the commits within a partition. */
  readonly id: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** Business key, where it has one. */
  readonly key: string | undefined;
  /** Message type, where it has one. */
  readonly type: string | undefined;
  /** A JSON value, a text, or bytes: as it was appended. */
  readonly body: Body;
  /** Media type of the body. */
  readonly contentType: string;
  /** Those of the producer; {} where there are none. */
  readonly headers: Readonly<Record<string, string>>;
  /** Messages with equal ones are handled one after the other. */
  readonly orderingKey: string | undefined;
  /** When it was appended, by the database's clock. */
  readonly sentAt: Date;
  /** 1 for the first. */
  readonly attempt: number;
}

/** One delivery, for a handler that has to know what became of it. */
export interface HandedOut {
  /** Called once: what came of it is written, or never will be, because the partition is lost. */
  over?: (isWritten: boolean) => void;
}

/** The message, or why nobody can read its row. */
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

/** A message as `queue.tail` shows it: nobody consumes it there. */
export interface TailedMessage extends Omit<ConsumedMessage, "attempt"> {
  /** Why a handler could not read the row; the body is then the text as it stands there. */
  readonly broken: string | undefined;
}

/** The message, readable or not. */
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
