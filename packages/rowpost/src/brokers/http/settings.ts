import { validateHeaderName, validateHeaderValue } from "node:http";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import type { Clock } from "../../runtime/clock.ts";
import { systemClock } from "../../runtime/clock.ts";
import { ConfigurationError, describeError } from "../../runtime/errors.ts";
import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { secretBytes } from "./signature.ts";
import type { Target } from "./target.ts";
import { targetOf } from "./target.ts";

/** Options of {@link http}. Exactly one of `url` and `urlByTopic`. */
export interface HttpBrokerOptions {
  /**
   * Endpoint of all messages, which get `rowpost-topic`. User and password become basic
   * authentication.
   */
  readonly url?: string | URL | undefined;
  /**
   * Endpoint of a topic. Undefined: the topic does not exist; its messages fail and can be retried.
   */
  readonly urlByTopic?: ((topic: string) => string | URL | undefined) | undefined;
  /** Signing secret, `whsec_<base64>` or any text; several during a rotation. Default: unsigned. */
  readonly secret?: string | readonly string[] | undefined;
  /**
   * From connecting to the end of the answer's body, in ms. Default 15,000. The publish timeout
   * ends it too.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Most concurrent requests, and so connections, to one endpoint, over all calls. All endpoints
   * together share twice as many, so that one that hangs does not block the others. Default 32.
   */
  readonly maxInFlight?: number | undefined;
  /**
   * Sent with every request, such as `authorization`. Message headers with these names are encoded.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Larger bodies are refused without a request. Default: none; a receiver then answers 413. */
  readonly maxBodyBytes?: number | undefined;
  /** Answer header with the receiver's receipt. Default `rowpost-receipt`. */
  readonly receiptHeader?: string | undefined;
  /** For https: trusted certificate authorities and a client certificate, as PEM. */
  readonly tls?: HttpTlsOptions | undefined;
  /** Default: the system clock. Its wall clock dates the signature. */
  readonly clock?: Clock | undefined;
}

/** TLS options of {@link HttpBrokerOptions}, as of `node:tls`. */
export interface HttpTlsOptions {
  /** Certificates of trusted authorities. Default: those of Node.js. */
  readonly ca?: string | undefined;
  /** Certificate chain of this client. Requires `key`. */
  readonly cert?: string | undefined;
  /** Private key of `cert`. */
  readonly key?: string | undefined;
}

const KINDS: OptionKinds<HttpBrokerOptions> = {
  url: ["string", "object"],
  urlByTopic: "function",
  secret: ["string", "array"],
  timeoutMs: "number",
  maxInFlight: "number",
  headers: "object",
  maxBodyBytes: "number",
  receiptHeader: "string",
  tls: "object",
  clock: "object",
};
const TLS_KINDS: OptionKinds<HttpTlsOptions> = { ca: "string", cert: "string", key: "string" };

export interface HttpSettings {
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  readonly secrets: readonly Buffer[];
  readonly fixedHeaders: Readonly<Record<string, string>>;
  readonly fixedNames: ReadonlySet<string>;
  readonly receiptHeader: string;
  readonly maxBodyBytes: number | undefined;
  readonly clock: Clock;
  readonly tls: HttpTlsOptions;
  /** Scope of an unreachable endpoint: the whole connection with one url, else its topic. */
  readonly awayScope: "connection" | "destination";
  target(topic: string): Target | PublishFailed;
}

/** Throws `ConfigurationError` for invalid options. */
export function settingsOf(options: HttpBrokerOptions): HttpSettings {
  checkOptions("http broker", options, KINDS);
  checkOptions("http broker, tls", options.tls ?? {}, TLS_KINDS);
  const {
    url,
    urlByTopic,
    secret = [],
    timeoutMs = 15_000,
    maxInFlight = 32,
    receiptHeader = "rowpost-receipt",
  } = options;
  if ((url === undefined) === (urlByTopic === undefined)) {
    throw new ConfigurationError("http broker: give exactly one of url and urlByTopic");
  }
  for (const [name, value] of Object.entries({ timeoutMs, maxInFlight, maxBodyBytes: options.maxBodyBytes ?? 1 })) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new ConfigurationError(`http broker: ${name} must be a whole number of at least 1, not ${value}`);
  }
  const fixedHeaders = checkedHeaders(options.headers ?? {});
  return {
    timeoutMs,
    maxInFlight,
    maxBodyBytes: options.maxBodyBytes,
    clock: options.clock ?? systemClock,
    tls: options.tls ?? {},
    secrets: [secret].flat().map(secretBytes),
    fixedHeaders,
    fixedNames: new Set(Object.keys(fixedHeaders)),
    receiptHeader: receiptHeader.toLowerCase(),
    awayScope: urlByTopic === undefined ? "connection" : "destination",
    target: urlByTopic === undefined ? fixedTarget(url ?? "") : targetByTopic(urlByTopic),
  };
}

function checkedHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch (error) {
      // Leaves out the value, which may be a token.
      throw new ConfigurationError(
        `http broker: the header ${JSON.stringify(name)} cannot be sent: its name or value has a character that HTTP does not allow`,
        { cause: error },
      );
    }
    checked[name.toLowerCase()] = value;
  }
  return checked;
}

function fixedTarget(url: string | URL): HttpSettings["target"] {
  const target = targetOf(url);
  return () => target;
}

function targetByTopic(urlByTopic: (topic: string) => string | URL | undefined): HttpSettings["target"] {
  return (topic) => {
    try {
      const url = urlByTopic(topic);
      if (url !== undefined) return targetOf(url);
      return failed("message", "TOPIC_NOT_FOUND", `urlByTopic knows no url for topic ${topic}`);
    } catch (error) {
      return failed("message", "TOPIC_URL_INVALID", `urlByTopic(${topic}): ${describeError(error)}`);
    }
  };
}
