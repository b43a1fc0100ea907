/** MQTT 5 through MQTT.js. `docs/brokers/mqtt.md` lists the fields of a PUBLISH packet. */

import { BrokerError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { publishOn } from "../publishing/keeper.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { createWindow } from "../publishing/window.ts";
import { targetOf } from "../settings/server-address.ts";
import { createLinks } from "./links.ts";
import { type MqttOptions, settingsFrom } from "./options.ts";
import { publishBatch } from "./publish.ts";
import { mqttOptionsFromUrl } from "./url.ts";

export type { TlsOptions as MqttTlsOptions } from "../settings/tls-options.ts";
export { decodeMqttHeaders } from "./carry.ts";
export type { MqttOptions } from "./options.ts";
export { mqttOptionsFromUrl } from "./url.ts";

/**
 * A broker that publishes to MQTT 5 with QoS 1. Connects at the first `publish` or `check`. Throws
 * `ConfigurationError` for invalid options. The receipt (`message_id`) is `client-id#packet-id`,
 * followed by ` no-subscribers` if the server reports that.
 */
export function mqtt(options: MqttOptions): Broker {
  const settings = settingsFrom(options);
  const { maxInFlight, maxBodyBytes, requireSubscribers } = settings;
  const publishing = { settings, window: createWindow({ loads: maxInFlight }) };
  const links = createLinks(settings);

  return createBroker({
    name: "mqtt",
    title: "MQTT",
    target: targetOf(settings.servers),
    features: () => ({ ordering: "key", reportsUnknownTopic: requireSubscribers, maxBodyBytes }),
    publish: (batch, scope) =>
      publishOn(links, batch, scope, {
        label: "MQTT",
        publish: (link) => publishBatch(publishing, link, batch, scope),
      }),
    async check() {
      const link = await links.get();
      if (!("status" in link)) return;
      const { code, reason } = link;
      const text = `MQTT cannot be used: ${code}: ${reason}. ${ADVICE[code] ?? IS_IT_THERE}`;
      throw new BrokerError(code, text, { retriable: ADVICE[code] === undefined });
    },
    close: () => links.close(),
  });
}

const IS_IT_THERE =
  "Does a server that speaks MQTT 5 listen there (1883, or 8883 with TLS), and does tls.ca trust its certificate?";

const ADVICE: Readonly<Record<string, string>> = {
  UNAUTHORIZED: "Check user and password (ROWPOST_MQTT_USER, ROWPOST_MQTT_PASSWORD)",
  MISSING_PEER: "Install it",
  UNSUPPORTED_PROTOCOL_VERSION: "Use a server that speaks MQTT 5",
  QOS_NOT_SUPPORTED: "Use a server that takes QoS 1",
};

/** The broker of `mqtt://host1,host2?prefix=shop/`; see {@link mqttOptionsFromUrl}. */
export function mqttFromUrl(url: string, env: Readonly<Record<string, string | undefined>> = process.env): Broker {
  return mqtt(mqttOptionsFromUrl(url, env));
}
