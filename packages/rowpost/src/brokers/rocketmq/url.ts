/** `rocketmq://host:port[,host:port]/namespace?…`: the options as one line, for the command line and configuration files. */

import { readFileSync } from "node:fs";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { RocketmqOptions, TlsOptions } from "./options.ts";

/** Variables that the keys are taken from: a secret in a URL ends up in process lists and logs. */
const ACCESS_KEY = "ROWPOST_ROCKETMQ_ACCESS_KEY";
const SECRET_KEY = "ROWPOST_ROCKETMQ_SECRET_KEY";
const SESSION_TOKEN = "ROWPOST_ROCKETMQ_SESSION_TOKEN";

const FORM = "rocketmq://host:port[,host:port…][/namespace][?tls=true&batch=32]";

type Draft = { -readonly [Name in keyof RocketmqOptions]: RocketmqOptions[Name] };
type TlsDraft = { -readonly [Name in keyof TlsOptions]: TlsOptions[Name] };

/** What each query key does. */
const QUERY: Readonly<Record<string, (options: Draft, tls: TlsDraft, value: string) => void>> = {
  tls: (options, tls, value) => {
    if (value === "insecure") tls.rejectUnauthorized = false;
    options.tls = value === "insecure" || truth("tls", value);
  },
  ca: (_options, tls, value) => {
    tls.ca = file("ca", value);
  },
  cert: (_options, tls, value) => {
    tls.cert = file("cert", value);
  },
  key: (_options, tls, value) => {
    tls.key = file("key", value);
  },
  serverName: (_options, tls, value) => {
    tls.serverName = value;
  },
  batch: (options, _tls, value) => {
    options.batchSize = whole("batch", value);
  },
  inFlight: (options, _tls, value) => {
    options.maxInFlight = whole("inFlight", value);
  },
  timeoutMs: (options, _tls, value) => {
    options.requestTimeoutMs = whole("timeoutMs", value);
  },
  unordered: (options, _tls, value) => {
    if (value !== "warn" && value !== "publish" && value !== "fail") {
      throw new ConfigurationError(`broker URL: unordered must be warn, publish or fail, not "${value}"`);
    }
    options.unorderedTopic = value;
  },
};

/**
 * Options from a URL. Query keys: `tls` (`true`, `false`, `insecure`), `ca`, `cert`, `key` (PEM files), `serverName`, `batch`, `inFlight`, `timeoutMs`,
 * `unordered`. Keys come from ROWPOST_ROCKETMQ_ACCESS_KEY, ROWPOST_ROCKETMQ_SECRET_KEY and ROWPOST_ROCKETMQ_SESSION_TOKEN. Throws
 * {@link ConfigurationError} for anything else, naming it.
 */
export function rocketmqOptionsFromUrl(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): RocketmqOptions {
  // Not the WHATWG parser: it knows no list of hosts.
  const match = /^rocketmq:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(url);
  if (match === null) throw new ConfigurationError(`broker URL: expected ${FORM}`);
  const [, hosts = "", path = "", query = ""] = match;
  if (hosts.includes("@")) {
    throw new ConfigurationError(`broker URL: no user or password in it; set ${ACCESS_KEY} and ${SECRET_KEY} instead`);
  }
  if (path.replace(/\/$/, "").includes("/")) {
    throw new ConfigurationError(`broker URL: "/${path}" is more than a namespace; expected ${FORM}`);
  }
  const options: Draft = { endpoints: hosts };
  const tls: TlsDraft = {};
  const namespace = decode(path.replace(/\/$/, ""));
  if (namespace !== "") options.namespace = namespace;
  for (const [name, value] of new URLSearchParams(query)) {
    const apply = Object.hasOwn(QUERY, name) ? QUERY[name] : undefined;
    if (apply === undefined) {
      throw new ConfigurationError(`broker URL: unknown setting "${name}"; known are ${Object.keys(QUERY).join(", ")}`);
    }
    apply(options, tls, value);
  }
  if (Object.keys(tls).length > 0) {
    if (options.tls === false) throw new ConfigurationError("broker URL: tls=false contradicts the other TLS settings");
    options.tls = tls;
  }
  if (env[ACCESS_KEY]) options.accessKey = env[ACCESS_KEY];
  if (env[SECRET_KEY]) options.secretKey = env[SECRET_KEY];
  if (env[SESSION_TOKEN]) options.sessionToken = env[SESSION_TOKEN];
  return options;
}

function truth(name: string, value: string): boolean {
  if (value === "true" || value === "1" || value === "") return true;
  if (value === "false" || value === "0") return false;
  throw new ConfigurationError(`broker URL: ${name} must be true, false or insecure, not "${value}"`);
}

function whole(name: string, value: string): number {
  if (!/^\d{1,9}$/.test(value))
    throw new ConfigurationError(`broker URL: ${name} must be a whole number, not "${value}"`);
  return Number(value);
}

function file(name: string, path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigurationError(`broker URL: cannot read the ${name} file ${path}`, { cause });
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigurationError(`broker URL: "${text}" is not percent-encoded properly`, { cause });
  }
}
