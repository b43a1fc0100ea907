/**
 * RocketMQ 4.x, and 5.x without its gRPC proxy, through a small producer on the classic remoting
 * protocol. `docs/brokers/rocketmq-classic.md` lists the fields of a message, which are the same
 * for consumers as with `rowpost/rocketmq`.
 */

import type { Broker } from "../broker.ts";
import { createAbortScope } from "../publishing/abort-scope.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { inTurns, topicOf } from "../publishing/turns.ts";
import { createWindow } from "../publishing/window.ts";
import { createRoutes } from "../rocketmq/routes.ts";
import { targetOf } from "../settings/server-address.ts";
import { checkCluster } from "./check.ts";
import { createNameServers } from "./name-servers.ts";
import { type RocketmqClassicOptions, settingsFrom } from "./options.ts";
import { createPrimaries } from "./primaries.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import type { TopicRoute } from "./topic-route.ts";
import { rocketmqClassicOptionsFromUrl } from "./url.ts";

export { headersOf as decodeRocketmqHeaders } from "../rocketmq/carry.ts";
export type { TlsOptions as RocketmqClassicTlsOptions } from "../settings/tls-options.ts";
export type { RocketmqClassicOptions } from "./options.ts";
export { rocketmqClassicOptionsFromUrl } from "./url.ts";

/**
 * A broker that publishes to the RocketMQ brokers listed by the name servers. Connects at the first
 * `publish` or `check`. Throws `ConfigurationError` for invalid options. The receipt (`message_id`)
 * is `msgId:queue:offset`: the broker's id and the position in its queue.
 */
export function rocketmqClassic(options: RocketmqClassicOptions): Broker {
  const settings = settingsFrom(options);
  const { maxBodyBytes, maxInFlight } = settings;
  const lifetime = createAbortScope();
  const nameServers = createNameServers(settings, lifetime);
  const primaries = createPrimaries(settings, lifetime);
  const publishing: Publishing = {
    settings,
    primaries,
    routes: createRoutes<TopicRoute>({ query: (topic) => nameServers.route(topic), now: () => performance.now() }),
    window: createWindow({ loads: maxInFlight }),
    turns: { next: Math.floor(Math.random() * 1000) },
  };

  return createBroker({
    name: "rocketmq-classic",
    title: "RocketMQ",
    target: targetOf(settings.nameServers, `/${settings.namespace}`),
    features: () => ({ ordering: "key", reportsUnknownTopic: true, maxBodyBytes }),
    publish: (batch, scope) => inTurns(batch, scope, topicOf, (messages) => publishBatch(publishing, messages, scope)),
    check: () => checkCluster({ settings, nameServers, primaries }),
    async close() {
      lifetime.abort();
      nameServers.close();
      primaries.close();
    },
  });
}

/**
 * The broker of `rocketmq-classic://ns1:9876;ns2:9876`; see {@link rocketmqClassicOptionsFromUrl}.
 */
export function rocketmqClassicFromUrl(
  url: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Broker {
  return rocketmqClassic(rocketmqClassicOptionsFromUrl(url, env));
}
