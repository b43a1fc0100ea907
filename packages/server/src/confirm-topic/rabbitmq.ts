/** Confirmations from a queue of RabbitMQ, through amqplib. */
import { connect } from "amqplib";
import { consumeRabbitmq, type RabbitmqConsumeConnection } from "rowpost/consume";
import { type RabbitmqOptions, rabbitmqOptionsFromUrl } from "rowpost/rabbitmq";
import { tlsOf } from "../clients/tls.ts";
import { consumeOptions, type OpenSource } from "./source.ts";

export const fromRabbitmqQueue: OpenSource = async ({ environment, topic, url }, parts) => {
  const options = rabbitmqOptionsFromUrl(url, environment);
  return await consumeRabbitmq({ ...consumeOptions(parts), queue: topic, connect: () => connectToOne(options) });
};

/** The first node that answers; throws what the last one said. */
async function connectToOne({
  connectTimeoutMs = 5_000,
  heartbeatSeconds = 10,
  tls,
  url = [],
  ...account
}: RabbitmqOptions): Promise<RabbitmqConsumeConnection> {
  let refusal: unknown;
  for (const node of [url].flat()) {
    const address = new URL(node);
    if (account.username !== undefined) address.username = encodeURIComponent(account.username);
    if (account.password !== undefined) address.password = encodeURIComponent(account.password);
    address.searchParams.set("heartbeat", String(heartbeatSeconds));
    try {
      return await connect(address.href, { timeout: connectTimeoutMs, ...(tls && tlsOf(tls)) });
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}
