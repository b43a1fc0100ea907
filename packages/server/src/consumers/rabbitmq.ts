import { type ChannelModel, connect } from "amqplib";
import { consumeRabbitmq } from "rowpost/consume";
import { type RabbitmqOptions, rabbitmqOptionsFromUrl } from "rowpost/rabbitmq";
import { tlsOf } from "../clients/tls.ts";
import type { Consume } from "./place.ts";

export const consumeRabbitmqQueue: Consume = async ({ environment, topic, url }, options) => {
  const settings = rabbitmqOptionsFromUrl(url, environment);
  return await consumeRabbitmq({ ...options, queue: topic, connect: () => connectRabbitmq(settings) });
};

/** Connects to the first node that answers; throws the last one's error. */
export async function connectRabbitmq({
  connectTimeoutMs = 5_000,
  heartbeatSeconds = 10,
  tls,
  url = [],
  ...account
}: RabbitmqOptions): Promise<ChannelModel> {
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
