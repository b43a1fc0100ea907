/** `mqtt://host:port[,host:port]?…`: the options as one line. */
import { serversUrl } from "../settings/servers-url.ts";
import {
  optionsOf,
  secretsOf,
  TLS_SETTINGS,
  textSetting,
  tlsOption,
  truthSetting,
  wholeSetting,
} from "../settings/url-settings.ts";
import type { MqttOptions } from "./options.ts";

/** Variables that secrets are taken from: in a URL they end up in process lists and logs. */
const USER = "ROWPOST_MQTT_USER";
const PASSWORD = "ROWPOST_MQTT_PASSWORD";

const TEXTS = { clientId: "clientId", prefix: "prefix" } as const;
const NUMBERS = { inFlight: "maxInFlight", timeoutMs: "ackTimeoutMs", maxBodyBytes: "maxBodyBytes" } as const;
const TRUTHS = { requireSubscribers: "requireSubscribers" } as const;

/**
 * The settings of its query are on the adapter's page; user and password come from
 * ROWPOST_MQTT_USER and ROWPOST_MQTT_PASSWORD. Throws `ConfigurationError` for anything else,
 * naming it.
 */
export function mqttOptionsFromUrl(url: string, env: Readonly<Record<string, string | undefined>>): MqttOptions {
  const { servers, isSecure, settings } = serversUrl(url, {
    schemes: ["mqtt", "mqtts"],
    form: "mqtt(s)://host:1883[,host:1883][?prefix=shop/]",
    known: [...Object.keys({ ...TEXTS, ...NUMBERS, ...TRUTHS }), ...TLS_SETTINGS],
    secrets: `set ${USER} and ${PASSWORD} instead`,
  });
  return {
    servers,
    ...optionsOf(settings, TEXTS, textSetting),
    ...optionsOf(settings, NUMBERS, wholeSetting),
    ...optionsOf(settings, TRUTHS, truthSetting),
    tls: tlsOption(settings, isSecure),
    ...secretsOf(env, { user: USER, password: PASSWORD }),
  };
}
