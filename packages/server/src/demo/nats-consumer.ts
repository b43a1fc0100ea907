/** A real JetStream consumer: receives, handles the order, acknowledges. */
import {
  AckPolicy,
  type ConsumerMessages,
  DeliverPolicy,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { BrokerError } from "rowpost";
import { fromNats } from "rowpost/inbox";
import { type NatsOptions, natsFromUrl, natsOptionsFromUrl } from "rowpost/nats";
import { natsConnectOptions } from "../clients/nats.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";
import type { Orders } from "./orders.ts";

const TOPIC = "rowpost_demo_orders";
const STREAM = "ROWPOST_DEMO";
/** The server forgets the consumer of a demo that was killed after this time, in nanoseconds. */
const FORGOTTEN_AFTER_NS = 30_000_000_000;

/** Makes a stream where no one takes the demo's subject, and begins to receive. */
export async function startNatsConsumer(url: string, options: ConsumerParts): Promise<DemoConsumer> {
  const { orders, onTrouble } = options;
  const settings = natsOptionsFromUrl(url, options.environment);
  const subject = `${typeof settings.subject === "string" ? settings.subject : ""}${TOPIC}`;
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    const broker = natsFromUrl(url, options.environment);
    closers.push(() => broker.close());
    // First, because its advice is better than the client's. A stream that is missing is made
    // below.
    await broker.check().catch((error: unknown) => {
      if (!(error instanceof BrokerError && error.code === "STREAM_NOT_FOUND")) throw error;
    });
    const connection = await connect(natsConnectOptions(settings, "rowpost demo"));
    closers.push(() => connection.close());
    const manager = await jetstreamManager(
      connection,
      settings.domain === undefined ? {} : { domain: settings.domain },
    );
    const { stream, isOurs } = await streamOf(manager, subject, settings, options.say);
    if (isOurs) closers.push(() => manager.streams.delete(stream));
    const messages = await consume(manager, stream, subject);
    closers.push(() => messages.close());
    void receive(messages, orders).catch((error: unknown) => onTrouble(`consumer: ${String(error)}`));
    return { broker, topic: TOPIC, label: labelOf(connection, stream), trouble: new Map<string, number>(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function streamOf(
  manager: JetStreamManager,
  subject: string,
  { stream }: NatsOptions,
  say: (text: string) => void,
): Promise<{ readonly stream: string; readonly isOurs: boolean }> {
  const names = await manager.streams.names(subject).next();
  const [found] = names;
  if (found !== undefined) return { stream: found, isOurs: false };
  const name = typeof stream === "string" ? stream : STREAM;
  say(`making the stream ${name} for the subject ${subject}, until the demo ends …`);
  await manager.streams.add({ name, subjects: [subject] });
  return { stream: name, isOurs: true };
}

/** From now on: what earlier runs left in the stream is none of this run's business. */
async function consume(manager: JetStreamManager, stream: string, subject: string): Promise<ConsumerMessages> {
  const { name } = await manager.consumers.add(stream, {
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.New,
    filter_subject: subject,
    inactive_threshold: FORGOTTEN_AFTER_NS,
  });
  const consumer = await manager.jetstream().consumers.get(stream, name);
  return await consumer.consume();
}

async function receive(messages: ConsumerMessages, orders: Orders): Promise<void> {
  for await (const message of messages) {
    await orders.receive(() => fromNats(message));
    message.ack();
  }
}

function labelOf(connection: NatsConnection, stream: string): string {
  return `nats://${connection.getServer()} stream ${stream}, subject ${TOPIC}`;
}

/** The same settings in the client's own words. */
