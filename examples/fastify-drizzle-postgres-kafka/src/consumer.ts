/** Another service: it reads a topic, made for this run, from its beginning. */
import { setTimeout as sleep } from "node:timers/promises";
import kafkajs from "kafkajs";
import { KAFKA_BROKERS } from "./settings.ts";

export interface Consumer {
  /** Reads to the end of the topic, removes it, and ends. */
  finish(): Promise<void>;
}

/** Calls back with the header `rowpost-key` of each message: the id of an order. */
export async function startConsumer(topic: string, onOrder: (id: string) => void): Promise<Consumer> {
  const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS, clientId: "reader", logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions: 3 }] });
  // kafkajs' own wait for leaders fails while Kafka has not heard of its new topic yet.
  const known = (): Promise<boolean> =>
    admin.fetchTopicOffsets(topic).then(
      (partitions) => partitions.length === 3,
      () => false,
    );
  for (let look = 0; look < 300 && !(await known()); look += 1) await sleep(100);
  const consumer = kafka.consumer({ groupId: topic });
  let read = 0;
  let onRead = (): void => {};
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    async eachMessage({ message }) {
      onOrder(String(message.headers?.["rowpost-key"]));
      read += 1;
      onRead();
    },
  });

  return {
    async finish() {
      const partitions = await admin.fetchTopicOffsets(topic);
      const stored = partitions.reduce((sum, { high }) => sum + Number(high), 0);
      await new Promise<void>((resolve) => {
        onRead = () => {
          if (read >= stored) resolve();
        };
        onRead();
      });
      await consumer.disconnect();
      await admin.deleteTopics({ topics: [topic] });
      await admin.disconnect();
    },
  };
}
