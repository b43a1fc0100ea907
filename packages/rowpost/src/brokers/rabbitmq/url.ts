/** `amqp://user:password@host:5672,host:5672/vhost?…`: the options as one line. */
import { ConfigurationError } from "../../runtime/errors.ts";
import {
  optionsOf,
  secretsOf,
  settingsIn,
  TLS_SETTINGS,
  textSetting,
  tlsOfScheme,
  wholeSetting,
} from "../settings/url-settings.ts";
import type { RabbitmqOptions } from "./options.ts";

/** Win over the URL's, which shows in process lists and logs. */
const USERNAME = "ROWPOST_RABBITMQ_USERNAME";
const PASSWORD = "ROWPOST_RABBITMQ_PASSWORD";

const NUMBERS = {
  inFlight: "maxInFlight",
  maxBodyBytes: "maxBodyBytes",
  connectTimeoutMs: "connectTimeoutMs",
  heartbeatSeconds: "heartbeatSeconds",
} as const;
const KNOWN = ["exchange", ...Object.keys(NUMBERS), ...TLS_SETTINGS];

/**
 * The adapter's page lists the query settings. User and password may come from
 * ROWPOST_RABBITMQ_USERNAME and ROWPOST_RABBITMQ_PASSWORD instead. Throws `ConfigurationError`,
 * without the URL.
 */
export function rabbitmqOptionsFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): RabbitmqOptions {
  // The WHATWG parser accepts one host only, so each node gets its own URL.
  const match = /^(amqps?:\/\/(?:[^/?#@]*@)?)([^/?#@]+)(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(url);
  const [, head = "", hosts = "", path = "", query = ""] = match ?? [];
  if (match === null) {
    throw new ConfigurationError(
      "broker URL: expected amqp[s]://[user:password@]host[:5672][,host…][/vhost][?exchange=…]",
    );
  }
  const settings = settingsIn(query, KNOWN);
  return {
    url: hosts.split(",").map((host) => `${head}${host}${path}`),
    ...optionsOf(settings, { exchange: "exchange" }, textSetting),
    ...optionsOf(settings, NUMBERS, wholeSetting),
    tls: tlsOfScheme(settings, url, "amqps"),
    ...secretsOf(environment, { username: USERNAME, password: PASSWORD }),
  };
}
