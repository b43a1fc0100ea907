import { connect } from "@nats-io/transport-node";
import { consumeNats } from "rowpost/consume";
import { natsOptionsFromUrl } from "rowpost/nats";
import { natsConnectOptions } from "../clients/nats.ts";
import type { Consume } from "./place.ts";

export const consumeNatsStream: Consume = async ({ environment, group, topic, url }, options) => {
  const { domain, inboxPrefix, ...settings } = natsOptionsFromUrl(url, environment);
  return await consumeNats({
    ...options,
    stream: topic,
    durable: group,
    domain,
    inboxPrefix,
    connect: () => connect(natsConnectOptions(settings, "rowpost consumer")),
  });
};
