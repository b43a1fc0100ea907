/** Confirmations from a stream of NATS JetStream. */
import { connect } from "@nats-io/transport-node";
import { consumeNats } from "rowpost/consume";
import { natsOptionsFromUrl } from "rowpost/nats";
import { natsConnectOptions } from "../clients/nats.ts";
import { consumeOptions, type OpenSource } from "./source.ts";

/** The stream's durable consumer has the name of the group. */
export const fromNatsStream: OpenSource = async ({ environment, group, topic, url }, parts) => {
  const { domain, inboxPrefix, ...settings } = natsOptionsFromUrl(url, environment);
  return await consumeNats({
    ...consumeOptions(parts),
    ...{ stream: topic, durable: group, domain, inboxPrefix },
    connect: () => connect(natsConnectOptions(settings, "rowpost confirmations")),
  });
};
