/** `redis://host:port/db?…`: the options as one line. */

import {
  oneOfSetting,
  optionsOf,
  secretsOf,
  settingsIn,
  TLS_SETTINGS,
  tlsOfScheme,
  truthSetting,
  wholeSetting,
} from "../settings/url-settings.ts";
import type { RedisOptions } from "./options.ts";

/** They win over the URL's, which ends up in process lists and logs. */
const USERNAME = "ROWPOST_REDIS_USERNAME";
const PASSWORD = "ROWPOST_REDIS_PASSWORD";

const NUMBERS = {
  maxLength: "maxLength",
  minReplicas: "minReplicas",
  replicaTimeoutMs: "replicaTimeoutMs",
  maxBodyBytes: "maxBodyBytes",
  connectTimeoutMs: "connectTimeoutMs",
} as const;
const KNOWN = ["prefix", "missingStream", "allowEviction", ...Object.keys(NUMBERS), ...TLS_SETTINGS];

/**
 * The settings of its query are on the adapter's page. ROWPOST_REDIS_USERNAME and
 * ROWPOST_REDIS_PASSWORD win over what stands in the URL. Throws `ConfigurationError` for anything
 * else, naming it.
 */
export function redisOptionsFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): RedisOptions {
  const [address = "", query = ""] = url.split(/\?(.*)/s, 2);
  const settings = settingsIn(query, KNOWN);
  const prefix = settings.get("prefix");
  return {
    url: address,
    ...(prefix === null ? {} : { streamOf: (topic: string) => `${prefix}${topic}` }),
    ...optionsOf(settings, { missingStream: "missingStream" }, oneOfSetting(["create", "fail"])),
    ...optionsOf(settings, { allowEviction: "allowEviction" }, truthSetting),
    ...optionsOf(settings, NUMBERS, wholeSetting),
    tls: tlsOfScheme(settings, url, "rediss"),
    ...secretsOf(environment, { username: USERNAME, password: PASSWORD }),
  };
}
