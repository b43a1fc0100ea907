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

/** They win over the URL's, which ends up in process lists and logs. */
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
 * The settings of its query are on the adapter's page. User and password may stand in
 * ROWPOST_RABBITMQ_USERNAME and ROWPOST_RABBITMQ_PASSWORD instead. Throws
 * `ConfigurationError`, without the URL.
 */
export function rabbitmqOptionsFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): RabbitmqOptions {
  // The list of nodes is not for the WHATWG parser, which knows one host: it gets a URL for each.
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
