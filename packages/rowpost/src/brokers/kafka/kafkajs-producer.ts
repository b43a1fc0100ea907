/**
 * Sending with the producer of kafkajs: for clients of the user's, and where `kafkajs-direct.ts`
 * finds not what it needs. A request for each partition, because it tells one error for a whole
 * request and keeps the offsets of what was stored to itself.
 */

import type { WireRecord } from "./carry.ts";
import type { BatchOutcome, PartitionBatch, Session } from "./driver.ts";
import type { KafkajsClient } from "./given-client.ts";
import { faultOf } from "./kafkajs-faults.ts";
import type { Settings } from "./options.ts";

/** One way to send. */
export interface Sender extends Pick<Session, "combines" | "send"> {
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
}

interface Producer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  send(request: object): Promise<readonly { readonly baseOffset?: string; readonly partition: number }[]>;
}

export function producerSender(client: KafkajsClient, settings: Settings): Sender {
  const producer = client.producer({
    allowAutoTopicCreation: false,
    idempotent: false,
    retry: { retries: 0 },
    createPartitioner: () => givenPartition,
  }) as Producer;

  async function sendOne(topic: string, { partition, records }: PartitionBatch): Promise<BatchOutcome> {
    try {
      const [answer] = await producer.send({
        topic,
        acks: ALL_REPLICAS,
        timeout: settings.requestTimeoutMs,
        messages: records.map((record) => messageOf(record, partition)),
      });
      if (answer?.baseOffset !== undefined && answer.partition === partition) {
        return { baseOffset: BigInt(answer.baseOffset) };
      }
      return { fault: { kind: "lost", code: "NO_RECEIPT", text: "kafkajs told no offset for this partition" } };
    } catch (error) {
      // After a lost connection kafkajs connects again, and when that is refused tells only this:
      // the request may have been written before.
      return { fault: faultOf(error, false) };
    }
  }

  return {
    combines: false,
    connect: () => producer.connect(),
    disconnect: () => producer.disconnect(),
    send: (topic, batches) => Promise.all(batches.map((batch) => sendOne(topic, batch))),
  };
}

const ALL_REPLICAS = -1;

const givenPartition = ({ message }: { readonly message: { readonly partition: number } }): number => message.partition;

function messageOf({ key, value, headers }: WireRecord, partition: number): object {
  return { key, value, headers, partition };
}
