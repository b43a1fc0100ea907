/** A record of Kafka as a message, whichever client gave it. */

import type { ReceivedMessage } from "../../inbox/identity.ts";
import { textOf } from "../../inbox/reading/headers.ts";
import { fromKafka, type KafkaRecord, kafkaHeaders } from "../../inbox/reading/kafka.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A record with its place, as `raw` has it. */
export interface KafkaDelivered extends KafkaRecord {
  /** Topic that it came from. */
  readonly topic: string;
  /** Partition that it came from. */
  readonly partition: number;
  /** Offset within the partition: text (kafkajs), or a bigint. */
  readonly offset: string | bigint;
  /** Ordering key, or the message key. */
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
