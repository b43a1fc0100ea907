import { consumeRocketmq } from "rowpost/consume";
import { rocketmqOptionsFromUrl } from "rowpost/rocketmq";
import type { Consume } from "./place.ts";

export const consumeRocketmqTopic: Consume = async ({ environment, group, topic, url }, options) => {
  const { accessKey, endpoints, namespace, requestTimeoutMs, secretKey, sessionToken, tls } = rocketmqOptionsFromUrl(
    url,
    environment,
  );
  return await consumeRocketmq({
    ...options,
    endpoints,
    namespace,
    requestTimeoutMs,
    tls,
    accessKey,
    secretKey,
    sessionToken,
    group,
    topics: [topic],
  });
};
