import { serversUrl } from "../settings/servers-url.ts";
import {
  fileSetting,
  optionsOf,
  secretsOf,
  TLS_SETTINGS,
  textSetting,
  tlsOption,
  wholeSetting,
} from "../settings/url-settings.ts";
import type { NatsOptions } from "./options.ts";

/** Variables with the secrets: a URL shows in process lists and logs. */
const USER = "ROWPOST_NATS_USER";
const PASSWORD = "ROWPOST_NATS_PASSWORD";
const TOKEN = "ROWPOST_NATS_TOKEN";

const FORM = "nats://host:4222[,host:4222][?stream=NAME&tls=true]";

const TEXTS = {
  stream: "stream",
  prefix: "subject",
  idPrefix: "messageIdPrefix",
  domain: "domain",
  inbox: "inboxPrefix",
} as const;
const NUMBERS = { inFlight: "maxInFlight", timeoutMs: "ackTimeoutMs", maxBodyBytes: "maxBodyBytes" } as const;
const FILES = { creds: "credentials", nkey: "nkeySeed" } as const;
const KNOWN = [...Object.keys({ ...TEXTS, ...NUMBERS, ...FILES }), ...TLS_SETTINGS];

/**
 * The adapter's page lists the query settings. User and password come from ROWPOST_NATS_USER and
 * ROWPOST_NATS_PASSWORD, or a token from ROWPOST_NATS_TOKEN. Throws `ConfigurationError` that names
 * any other setting.
 */
export function natsOptionsFromUrl(url: string, env: Readonly<Record<string, string | undefined>>): NatsOptions {
  const { servers, isSecure, settings } = serversUrl(url, {
    schemes: ["nats", "tls"],
    form: FORM,
    known: KNOWN,
    secrets: `set ${USER} and ${PASSWORD}, or ${TOKEN} instead`,
  });
  return {
    servers,
    ...optionsOf(settings, TEXTS, textSetting),
    ...optionsOf(settings, NUMBERS, wholeSetting),
    ...optionsOf(settings, FILES, (name, path) => fileSetting(name, path).toString().trim()),
    tls: tlsOption(settings, isSecure),
    ...secretsOf(env, { user: USER, password: PASSWORD, token: TOKEN }),
  };
}
