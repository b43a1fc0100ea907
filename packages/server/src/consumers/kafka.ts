import { type ConsumerConfig, Kafka, type KafkaConfig, type SASLOptions } from "kafkajs";
import { type Consumption, consumeKafka } from "rowpost/consume";
import { type KafkaOptions, kafkaOptionsFromUrl } from "rowpost/kafka";
import { tlsOf } from "../clients/tls.ts";
import type { CommonOptions, ConsumePlace } from "./place.ts";

export async function consumeKafkaTopic(
  { environment, group, topic, url }: ConsumePlace,
  options: CommonOptions,
  config: Partial<ConsumerConfig> = {},
): Promise<Consumption> {
  const consumer = kafkaClient(kafkaOptionsFromUrl(url, environment)).consumer({
    groupId: group,
    allowAutoTopicCreation: false,
    ...config,
  });
  await consumer.connect();
  try {
    const consumption = await consumeKafka({ ...options, consumer, topics: [topic] });
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
}

export function kafkaClient({
  brokers = [],
  clientId,
  connectTimeoutMs,
  requestTimeoutMs,
  sasl,
  tls,
}: KafkaOptions): Kafka {
  const addresses = [brokers].flat().flatMap((part) => part.split(","));
  const config: KafkaConfig = {
    brokers: addresses.map((address) => (address.includes(":") ? address : `${address}:9092`)),
    logLevel: 0,
    ...(clientId !== undefined && { clientId }),
    ...(connectTimeoutMs !== undefined && { connectionTimeout: connectTimeoutMs }),
    ...(requestTimeoutMs !== undefined && { requestTimeout: requestTimeoutMs }),
    ...(tls !== undefined && { ssl: typeof tls === "boolean" ? tls : tlsOf(tls) }),
    ...(sasl !== undefined && { sasl: { mechanism: "plain", ...sasl } as SASLOptions }),
  };
  return new Kafka(config);
}
