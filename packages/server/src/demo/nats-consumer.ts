import { AckPolicy, DeliverPolicy, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { BrokerError } from "rowpost";
import { type NatsOptions, natsFromUrl, natsOptionsFromUrl } from "rowpost/nats";
import { natsConnectOptions } from "../clients/nats.ts";
import { consumeNatsStream } from "../consumers/nats.ts";
import type { StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const STREAM = "ROWPOST_DEMO";
/** The server drops a killed demo's consumer after this time, in nanoseconds. */
const FORGOTTEN_AFTER_NS = 30_000_000_000;

export const startNatsConsumer: StartConsumer = async (url, { atEnd, environment, orders, say }) => {
  const settings = natsOptionsFromUrl(url, environment);
  const { domain } = settings;
  const subject = `${typeof settings.subject === "string" ? settings.subject : ""}${TOPIC}`;
  const broker = natsFromUrl(url, environment);
  atEnd(() => broker.close());
  // First, because its advice is better than the client's. A missing stream is created below.
  await broker.check().catch((error: unknown) => {
    if (!(error instanceof BrokerError && error.code === "STREAM_NOT_FOUND")) throw error;
  });
  const connection = await connect(natsConnectOptions(settings, "rowpost demo"));
  atEnd(() => connection.close());
  const manager = await jetstreamManager(connection, domain === undefined ? {} : { domain });
  const { stream, isOurs } = await streamOf(manager, subject, settings, say);
  if (isOurs) atEnd(() => manager.streams.delete(stream));
  // Starts at new messages, ignoring those of earlier runs.
  const { name: group } = await manager.consumers.add(stream, {
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.New,
    filter_subject: subject,
    inactive_threshold: FORGOTTEN_AFTER_NS,
  });
  const consumption = await consumeNatsStream({ url, environment, topic: stream, group }, orders.options);
  atEnd(() => consumption.close());
  return { broker, topic: TOPIC, label: `nats://${connection.getServer()} stream ${stream}, subject ${TOPIC}` };
};

async function streamOf(
  manager: JetStreamManager,
  subject: string,
  { stream }: NatsOptions,
  say: (text: string) => void,
): Promise<{ readonly stream: string; readonly isOurs: boolean }> {
  const [found] = await manager.streams.names(subject).next();
  if (found !== undefined) return { stream: found, isOurs: false };
  const name = typeof stream === "string" ? stream : STREAM;
  say(`making the stream ${name} for the subject ${subject}, until the demo ends …`);
  await manager.streams.add({ name, subjects: [subject] });
  return { stream: name, isOurs: true };
}
