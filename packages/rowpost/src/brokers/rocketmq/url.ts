/** `rocketmq://host:port[,host:port]/namespace?…`: the options as one line. */

import { ConfigurationError } from "../../runtime/errors.ts";
import {
  namespaceIn,
  oneOfSetting,
  optionsOf,
  secretsOf,
  settingsIn,
  TLS_SETTINGS,
  tlsOption,
  wholeSetting,
} from "../settings/url-settings.ts";
import type { RocketmqOptions } from "./options.ts";

/** Variables that the keys are taken from: a secret in a URL ends up in process lists and logs. */
const ACCESS_KEY = "ROWPOST_ROCKETMQ_ACCESS_KEY";
const SECRET_KEY = "ROWPOST_ROCKETMQ_SECRET_KEY";
const SESSION_TOKEN = "ROWPOST_ROCKETMQ_SESSION_TOKEN";

const FORM = "rocketmq://host:port[,host:port…][/namespace][?tls=true&batch=32]";

const NUMBERS = { batch: "batchSize", inFlight: "maxInFlight", timeoutMs: "requestTimeoutMs" } as const;
const KNOWN = [...Object.keys(NUMBERS), "unordered", ...TLS_SETTINGS];

/**
 * The settings of its query are on the adapter's page. Keys come from ROWPOST_ROCKETMQ_ACCESS_KEY,
 * ROWPOST_ROCKETMQ_SECRET_KEY and ROWPOST_ROCKETMQ_SESSION_TOKEN. Throws {@link ConfigurationError}
 * for anything else, naming it.
 */
export function rocketmqOptionsFromUrl(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): RocketmqOptions {
  // Not the WHATWG parser: it knows no list of hosts.
  const match = /^rocketmq:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(url);
  if (match === null) throw new ConfigurationError(`broker URL: expected ${FORM}`);
  const [, endpoints = "", path = "", query = ""] = match;
  if (endpoints.includes("@")) {
    throw new ConfigurationError(`broker URL: no user or password in it; set ${ACCESS_KEY} and ${SECRET_KEY} instead`);
  }
  const namespace = namespaceIn(path, FORM);
  const settings = settingsIn(query, KNOWN);
  const tls = tlsOption(settings);
  return {
    endpoints,
    ...(namespace === "" ? {} : { namespace }),
    ...optionsOf(settings, NUMBERS, wholeSetting),
    ...optionsOf(settings, { unordered: "unorderedTopic" }, oneOfSetting(["warn", "publish", "fail"])),
    ...(tls === undefined ? {} : { tls }),
    ...secretsOf(env, { accessKey: ACCESS_KEY, secretKey: SECRET_KEY, sessionToken: SESSION_TOKEN }),
  };
}
