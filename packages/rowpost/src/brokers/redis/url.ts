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

/** Win over the URL's, which shows in process lists and logs. */
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
 * The adapter's page lists the query settings. ROWPOST_REDIS_USERNAME and ROWPOST_REDIS_PASSWORD
 * win over the URL. Throws `ConfigurationError` that names any other setting.
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
