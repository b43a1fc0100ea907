/** Confirmations from a topic of Kafka, through kafkajs. */
import { Kafka, type KafkaConfig, type SASLOptions } from "kafkajs";
import { consumeKafka } from "rowpost/consume";
import { type KafkaOptions, kafkaOptionsFromUrl } from "rowpost/kafka";
import { tlsOf } from "../clients/tls.ts";
import { consumeOptions, type OpenSource } from "./source.ts";

export const fromKafkaTopic: OpenSource = async ({ environment, group, topic, url }, parts) => {
  const client = new Kafka(configOf(kafkaOptionsFromUrl(url, environment)));
  const consumer = client.consumer({ groupId: group, allowAutoTopicCreation: false });
  await consumer.connect();
  try {
    const consumption = await consumeKafka({ ...consumeOptions(parts), consumer, topics: [topic] });
    return {
      async close() {
        const closed = await consumption.close();
        await consumer.disconnect();
        return closed;
      },
    };
  } catch (error) {
    await consumer.disconnect();
    throw error;
  }
};

function configOf({ brokers, clientId, connectTimeoutMs, requestTimeoutMs, sasl, tls }: KafkaOptions): KafkaConfig {
  return {
    brokers: [brokers ?? []].flat().flatMap((part) => part.split(",")),
    logLevel: 0,
    ...(clientId !== undefined && { clientId }),
    ...(connectTimeoutMs !== undefined && { connectionTimeout: connectTimeoutMs }),
    ...(requestTimeoutMs !== undefined && { requestTimeout: requestTimeoutMs }),
    ...(tls !== undefined && { ssl: typeof tls === "boolean" ? tls : tlsOf(tls) }),
    ...(sasl !== undefined && { sasl: { mechanism: "plain", ...sasl } as SASLOptions }),
  };
}
