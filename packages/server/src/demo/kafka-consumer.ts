import { setTimeout as sleep } from "node:timers/promises";
import type { Admin, Kafka } from "kafkajs";
import { kafkaFromUrl, kafkaOptionsFromUrl } from "rowpost/kafka";
import { consumeKafkaTopic, kafkaClient } from "../consumers/kafka.ts";
import { CommandFailure } from "../failure.ts";
import type { ConsumerParts, StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const PARTITIONS = 4;
/** An interrupted run keeps its partitions for this long. */
const TIMES = { sessionTimeout: 6_000, heartbeatInterval: 1_000 };

export const startKafkaConsumer: StartConsumer = async (url, parts) => {
  const { atEnd, environment, orders } = parts;
  const settings = kafkaOptionsFromUrl(url, environment);
  const broker = kafkaFromUrl(url, environment);
  atEnd(() => broker.close());
  await broker.check();
  await prepareTopic(kafkaClient(settings), parts);
  const place = { url, environment, topic: TOPIC, group: GROUP };
  const consumption = await consumeKafkaTopic(place, orders.options, TIMES);
  atEnd(() => consumption.close());
  return { broker, topic: TOPIC, label: `Kafka at ${String(settings.brokers)}, topic ${TOPIC}, group ${GROUP}` };
};

async function prepareTopic(client: Kafka, { say }: ConsumerParts): Promise<void> {
  const admin = client.admin();
  try {
    await admin.connect();
    if ((await admin.listTopics()).includes(TOPIC)) return;
    say(`making the topic ${TOPIC} …`);
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic: TOPIC, numPartitions: PARTITIONS }] });
    while (!(await hasLeaders(admin))) await sleep(100);
  } catch (cause) {
    throw new CommandFailure(
      `Kafka has no topic ${TOPIC}, and making it failed; run: kafka-topics.sh --bootstrap-server HOST:9092 --create --topic ${TOPIC} --partitions ${PARTITIONS}`,
      { cause },
    );
  } finally {
    await admin.disconnect();
  }
}

/** kafkajs' own wait for leaders fails until the broker knows its new topic. */
async function hasLeaders(admin: Admin): Promise<boolean> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] });
    return topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0));
  } catch (error) {
    if ((error as { type?: string }).type === "UNKNOWN_TOPIC_OR_PARTITION") return false;
    throw error;
  }
}
