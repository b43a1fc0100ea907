/** Kafka: records of kafkajs and @platformatic/kafka. */
import type { ReceivedMessage } from "../identity.ts";
import { type HeaderValue, identityIn, textOf } from "./headers.ts";

/** Headers of a record: an object (kafkajs), or a map whose names may be bytes (platformatic). */
export type KafkaHeaders =
  | Readonly<Record<string, HeaderValue>>
  | Iterable<readonly [string | Uint8Array, HeaderValue]>;

/** A record. */
export interface KafkaRecord {
  /** As the client gives them. */
  readonly headers?: KafkaHeaders | null | undefined;
  /** Offset within the partition. */
  readonly offset?: string | bigint | number | undefined;
  /** Topic; kafkajs gives it beside the record. */
  readonly topic?: string | undefined;
  /** Partition; kafkajs gives it beside the record. */
  readonly partition?: number | undefined;
}

/** The argument of kafkajs' `eachMessage`. */
export interface KafkaPayload {
  /** Topic of the record. */
  readonly topic: string;
  /** Partition of the record. */
  readonly partition: number;
  /** The record. */
  readonly message: KafkaRecord;
}

/**
 * Identity of a record: the payload of kafkajs' `eachMessage`, or a message of either client. `id`
 * is `topic-partition@offset`, as in the receipt. Throws `MissingIdentityError`.
 */
export function fromKafka(received: KafkaRecord | KafkaPayload): ReceivedMessage {
  const record: KafkaRecord = "message" in received ? { ...received.message, ...placeOf(received) } : received;
  const { offset, partition, topic } = record;
  const isPlaced = topic !== undefined && partition !== undefined && offset !== undefined;
  return identityIn("Kafka", kafkaHeaders(record.headers), {
    topic,
    id: isPlaced ? `${topic}-${partition}@${offset}` : undefined,
  });
}

function placeOf({ partition, topic }: KafkaPayload): Pick<KafkaRecord, "partition" | "topic"> {
  return { partition, topic };
}

/** By name, with the client's values. */
export function kafkaHeaders(headers: KafkaRecord["headers"]): Record<string, unknown> {
  if (headers === null || headers === undefined) return {};
  if (!(Symbol.iterator in headers)) return headers;
  return Object.fromEntries([...headers].map(([name, value]) => [textOf(name) ?? "", value]));
}
