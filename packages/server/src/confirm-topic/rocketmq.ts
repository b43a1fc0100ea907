/** Confirmations from a topic of RocketMQ 5, through its proxy. */
import { consumeRocketmq } from "rowpost/consume";
import { rocketmqOptionsFromUrl } from "rowpost/rocketmq";
import { consumeOptions, type OpenSource } from "./source.ts";

export const fromRocketmqTopic: OpenSource = async ({ environment, group, topic, url }, parts) => {
  const { accessKey, endpoints, namespace, requestTimeoutMs, secretKey, sessionToken, tls } = rocketmqOptionsFromUrl(
    url,
    environment,
  );
  return await consumeRocketmq({
    ...consumeOptions(parts),
    ...{ endpoints, namespace, requestTimeoutMs, tls, accessKey, secretKey, sessionToken },
    ...{ group, topics: [topic] },
  });
};
