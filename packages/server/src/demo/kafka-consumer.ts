/** A real Kafka consumer: receives, handles the order, commits. */
import { setTimeout as sleep } from "node:timers/promises";
import kafkajs, { type KafkaConfig } from "kafkajs";
import { fromKafka } from "rowpost/inbox";
import { type KafkaOptions, kafkaFromUrl, kafkaOptionsFromUrl } from "rowpost/kafka";
import { CommandFailure } from "../cli/failure.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const PARTITIONS = 4;

/** Makes the topic where it is missing, and begins to receive. */
export async function startKafkaConsumer(url: string, options: ConsumerParts): Promise<DemoConsumer> {
  const { environment, orders, onTrouble } = options;
  const settings = kafkaOptionsFromUrl(url, environment);
  const broker = kafkaFromUrl(url, environment);
  const client = new kafkajs.Kafka(clientConfig(settings));
  // An interrupted run keeps its partitions for this long.
  const consumer = client.consumer({ groupId: GROUP, sessionTimeout: 6_000, heartbeatInterval: 1_000 });
  try {
    await broker.check();
    await prepareTopic(client, options);
    consumer.on("consumer.crash", ({ payload }) => onTrouble(`consumer: ${payload.error.message}`));
    await consumer.connect();
    await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
    await consumer.run({
      partitionsConsumedConcurrently: PARTITIONS,
      eachMessage: (payload) => orders.receive(() => fromKafka(payload)),
    });
  } catch (error) {
    await Promise.allSettled([consumer.disconnect(), broker.close()]);
    throw error;
  }
  return {
    broker,
    topic: TOPIC,
    label: `Kafka at ${String(settings.brokers)}, topic ${TOPIC}, group ${GROUP}`,
    trouble: new Map(),
    async close() {
      await Promise.allSettled([consumer.disconnect(), broker.close()]);
    },
  };
}

async function prepareTopic(client: kafkajs.Kafka, { say }: ConsumerParts): Promise<void> {
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

/** kafkajs' own wait for leaders fails while the broker has not heard of its new topic yet. */
async function hasLeaders(admin: kafkajs.Admin): Promise<boolean> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] });
    return topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0));
  } catch (error) {
    if ((error as { type?: string }).type === "UNKNOWN_TOPIC_OR_PARTITION") return false;
    throw error;
  }
}

/** The options of the URL as kafkajs wants them. */
function clientConfig({ brokers = [], tls, sasl }: KafkaOptions): KafkaConfig {
  const config: KafkaConfig = {
    brokers: [brokers]
      .flat()
      .flatMap((text) => text.split(","))
      .map((text) => (text.includes(":") ? text : `${text}:9092`)),
    clientId: "rowpost-demo",
    logLevel: kafkajs.logLevel.NOTHING,
  };
  if (tls !== undefined) config.ssl = typeof tls === "boolean" ? tls : tlsConfig(tls);
  if (sasl !== undefined) config.sasl = saslConfig(sasl);
  return config;
}

function tlsConfig({
  ca,
  cert,
  key,
  rejectUnauthorized,
  serverName,
}: Exclude<KafkaOptions["tls"], boolean | undefined>): object {
  const pem = { ca, cert, key, servername: serverName, rejectUnauthorized };
  return Object.fromEntries(
    Object.entries(pem).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value instanceof Uint8Array ? Buffer.from(value) : value]],
    ),
  );
}

function saslConfig({
  mechanism = "plain",
  username,
  password,
}: NonNullable<KafkaOptions["sasl"]>): NonNullable<KafkaConfig["sasl"]> {
  if (mechanism === "plain") return { mechanism, username, password };
  return mechanism === "scram-sha-256" ? { mechanism, username, password } : { mechanism, username, password };
}
