/**
 * Kafka: kafkajs, one send for each batch, acknowledged by all replicas, with the key that decides
 * the partition.
 */
import { setTimeout as sleep } from "node:timers/promises";
import kafkajs from "kafkajs";
import type { BrokerServer } from "./broker.ts";

const PARTITIONS = 4;
const ALL_REPLICAS = -1;

export async function openKafkaServer(url: URL): Promise<BrokerServer> {
  const kafka = new kafkajs.Kafka({
    brokers: [url.host],
    clientId: "rowpost-bench",
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  return {
    name: "Kafka",
    port: Number(url.port || 9092),
    async makeTopic(topic) {
      await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions: PARTITIONS }] });
      // kafkajs' own wait for leaders fails until the broker knows its new topic.
      const known = (): Promise<boolean> =>
        admin.fetchTopicOffsets(topic).then(
          ({ length }) => length === PARTITIONS,
          () => false,
        );
      for (let look = 0; look < 300 && !(await known()); look += 1) await sleep(100);
    },
    async emptyTopic() {},
    async removeTopic(topic) {
      await admin.deleteTopics({ topics: [topic] });
    },
    async bareProducer(topic) {
      const producer = kafka.producer({ allowAutoTopicCreation: false });
      await producer.connect();
      return {
        async publish(batch) {
          await producer.send({
            topic,
            acks: ALL_REPLICAS,
            messages: batch.map(({ key, orderingKey, body, headers }) => ({
              key: orderingKey ?? key,
              value: Buffer.from(body),
              headers: { ...headers },
            })),
          });
        },
        close: () => producer.disconnect(),
      };
    },
    close: () => admin.disconnect(),
  };
}
