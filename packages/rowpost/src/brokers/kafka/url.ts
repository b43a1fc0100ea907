import { ConfigurationError } from "../../runtime/errors.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";
import {
  oneOfSetting,
  optionsOf,
  secretsOf,
  settingsIn,
  TLS_SETTINGS,
  textSetting,
  tlsOption,
  wholeSetting,
} from "../settings/url-settings.ts";
import { DRIVERS, type KafkaOptions, type KafkaSaslOptions, MECHANISMS } from "./options.ts";

const FORM = "kafka://[user:password@]host:9092[,host:9092…][?tls=true&sasl=scram-sha-256]";
/** Win over the URL's, which shows in process lists and logs. */
const USERNAME = "ROWPOST_KAFKA_USERNAME";
const PASSWORD = "ROWPOST_KAFKA_PASSWORD";

const NUMBERS = { connectTimeoutMs: "connectTimeoutMs", timeoutMs: "requestTimeoutMs" } as const;
const KNOWN = [...TLS_SETTINGS, "sasl", "clientId", "driver", ...Object.keys(NUMBERS)];

/**
 * The settings of its query are on the adapter's page. The account comes from
 * ROWPOST_KAFKA_USERNAME and ROWPOST_KAFKA_PASSWORD, or from the URL, percent-encoded. Throws
 * {@link ConfigurationError} for anything else, naming it.
 */
export function kafkaOptionsFromUrl(url: string, env: Readonly<Record<string, string | undefined>>): KafkaOptions {
  // The WHATWG parser does not support a list of hosts.
  const match = /^kafka:\/\/(?:([^/?#]*)@)?([^/?#@]*)\/?(?:\?([^#]*))?$/i.exec(url);
  if (match === null) throw new ConfigurationError(`broker URL: expected ${FORM}`);
  const [, account = "", brokers = "", query = ""] = match;
  const settings = settingsIn(query, KNOWN);
  return {
    brokers,
    tls: tlsOption(settings),
    sasl: saslOf(account, settings, env),
    ...optionsOf(settings, { clientId: "clientId" }, textSetting),
    ...optionsOf(settings, { driver: "driver" }, oneOfSetting(DRIVERS)),
    ...optionsOf(settings, NUMBERS, wholeSetting),
  };
}

function saslOf(
  account: string,
  settings: URLSearchParams,
  env: Readonly<Record<string, string | undefined>>,
): KafkaSaslOptions | undefined {
  const [, user = "", secret = ""] = /^([^:]*):?(.*)$/s.exec(account) ?? [];
  const {
    username = percentDecoded("broker URL: the user", user),
    password = percentDecoded("broker URL: the password", secret),
  } = secretsOf(env, { username: USERNAME, password: PASSWORD });
  const mechanism = optionsOf(settings, { sasl: "mechanism" }, oneOfSetting(MECHANISMS));
  if (username === "" && password === "" && mechanism.mechanism === undefined) return undefined;
  if (username !== "" && password !== "") return { username, password, ...mechanism };
  throw new ConfigurationError(
    `broker URL: ${username === "" ? "a user" : "a password"} is missing; set ${USERNAME} and ${PASSWORD}, or write kafka://user:password@host`,
  );
}
