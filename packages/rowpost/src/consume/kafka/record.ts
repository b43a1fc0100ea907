import type { ReceivedMessage } from "../../inbox/identity.ts";
import { textOf } from "../../inbox/reading/headers.ts";
import { fromKafka, type KafkaRecord, kafkaHeaders } from "../../inbox/reading/kafka.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A record and its position; the type of `raw`. */
export interface KafkaDelivered extends KafkaRecord {
  /** Topic of the record. */
  readonly topic: string;
  /** Partition of the record. */
  readonly partition: number;
  /** Offset in the partition: text (kafkajs) or bigint. */
  readonly offset: string | bigint;
  /** Ordering key, or else the message key. */
  readonly key?: string | Uint8Array | null | undefined;
  /** Body. */
  readonly value?: string | Uint8Array | null | undefined;
}

/** Throws `MissingIdentityError`. */
export function kafkaMessage(record: KafkaDelivered, identity: ReceivedMessage = fromKafka(record)): DeliveredMessage {
  const entries = Object.entries(kafkaHeaders(record.headers));
  return deliveredMessage({
    identity,
    headers: Object.fromEntries(entries.map(([name, value]) => [name, textOf(value) ?? ""])),
    body: record.value,
    orderingKey: textOf(record.key),
  });
}
