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

/** Variables with the secrets: a URL shows in process lists and logs. */
const USER = "ROWPOST_MQTT_USER";
const PASSWORD = "ROWPOST_MQTT_PASSWORD";

const TEXTS = { clientId: "clientId", prefix: "prefix" } as const;
const NUMBERS = { inFlight: "maxInFlight", timeoutMs: "ackTimeoutMs", maxBodyBytes: "maxBodyBytes" } as const;
const TRUTHS = { requireSubscribers: "requireSubscribers" } as const;

/**
 * The adapter's page lists the query settings. User and password come from ROWPOST_MQTT_USER and
 * ROWPOST_MQTT_PASSWORD. Throws `ConfigurationError` that names any other setting.
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
