import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type Checked, numberKinds, numbersOf, timeoutBounds } from "../settings/checked.ts";
import { oneOfSetting, optionsOf, settingsIn, textSetting, wholeSetting } from "../settings/url-settings.ts";
import type { SqsClient } from "./client.ts";

/** Options of {@link sqs}. */
export interface SqsOptions {
  /** Such as `eu-central-1`. Default: that of the AWS SDK (`AWS_REGION`, profile). */
  readonly region?: string | undefined;
  /** URL of a server other than AWS's, or of a VPC endpoint: `http://127.0.0.1:9324`. */
  readonly endpoint?: string | undefined;
  /** Default: those of the AWS SDK (environment, profile, role of the machine). */
  readonly credentials?: SqsCredentials | undefined;
  /** An `SQSClient` to use instead of these. It retries by itself and is left open. */
  readonly client?: unknown;
  /** Account that owns the queues. Default: that of the credentials. */
  readonly account?: string | undefined;
  /** Queue of a topic; a name ending in `.fifo` keeps order. Default: the topic itself. */
  readonly queue?: ((topic: string) => string) | undefined;
  /** Largest message with its attributes, and largest request, in bytes. Default 262,144. */
  readonly maxMessageBytes?: number | undefined;
  /** Most requests (of at most ten messages) for one queue in flight, 1 to 1,000. Default 16. */
  readonly maxInFlight?: number | undefined;
  /** Time for an answer, 100 to 600,000 ms. Default 10,000. After it the outcome is unknown. */
  readonly timeoutMs?: number | undefined;
  /** Time to connect, 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** An access key of AWS. */
export interface SqsCredentials {
  /** Public id of the key. */
  readonly accessKeyId: string;
  /** Secret of the key. */
  readonly secretAccessKey: string;
  /** Token of temporary credentials. */
  readonly sessionToken?: string | undefined;
}

type Present = "queue" | "maxMessageBytes" | "maxInFlight" | "timeoutMs" | "connectTimeoutMs";

export interface Settings extends Checked<SqsOptions, Present> {
  readonly client: SqsClient | undefined;
  readonly account: string | undefined;
  readonly place: Readonly<Record<string, unknown>>;
  readonly label: string;
}

const NUMBERS = {
  /** Every queue accepts this much; AWS allows up to 1,048,576. */
  maxMessageBytes: [262_144, 1024, 1_048_576],
  maxInFlight: [16, 1, 1000],
  timeoutMs: timeoutBounds(10_000),
  connectTimeoutMs: timeoutBounds(5000),
} as const;

const KINDS: OptionKinds<SqsOptions> = {
  region: "string",
  endpoint: "string",
  credentials: "object",
  client: "object",
  account: "string",
  queue: "function",
  ...numberKinds(NUMBERS),
};

/** Throws `ConfigurationError`, which names the option and never a secret. */
export function settingsFrom(options: SqsOptions): Settings {
  checkOptions("sqs broker", options, KINDS);
  const { region, endpoint, credentials, client, account, queue = (topic: string) => topic } = options;
  const place = { region, endpoint, credentials };
  const given = Object.entries(place).filter(([, value]) => value !== undefined);
  if (client !== undefined && given.length > 0) {
    throw new ConfigurationError(`sqs broker: ${given.map(([name]) => name).join(", ")} cannot be given with a client`);
  }
  if (client !== undefined && !(typeof client === "object" && client !== null && "send" in client)) {
    throw new ConfigurationError("sqs broker: client is no SQSClient of @aws-sdk/client-sqs");
  }
  if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol))) {
    throw new ConfigurationError("sqs broker: endpoint is no URL such as http://127.0.0.1:9324");
  }
  return {
    client: client as SqsClient | undefined,
    account,
    queue,
    place: Object.fromEntries(given),
    label: endpoint ?? (region === undefined ? "SQS" : `SQS in ${region}`),
    ...numbersOf(options, NUMBERS),
  };
}

const FORM = "sqs://eu-central-1 or sqs://host:9324?region=eu-central-1";
const TEXTS = { region: "region", account: "account" } as const;
const WHOLES = { inFlight: "maxInFlight", timeoutMs: "timeoutMs", maxMessageBytes: "maxMessageBytes" } as const;
const OWN = ["prefix", "suffix", "scheme"];

/**
 * Options of `sqs://eu-central-1`, or `sqs://host:port?region=…` for another server. The AWS SDK
 * finds the credentials. Throws `ConfigurationError` that names any other setting.
 */
export function sqsOptionsFromUrl(url: string): SqsOptions {
  const match = /^sqs:\/\/([^/?#]*)\/?(?:\?([^#]*))?$/i.exec(url);
  const [, place = "", query = ""] = match ?? [];
  if (place.includes("@")) {
    throw new ConfigurationError("broker URL: no access key in it; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  }
  if (match === null || place === "") throw new ConfigurationError(`broker URL: expected ${FORM}`);
  const settings = settingsIn(query, [...Object.keys({ ...TEXTS, ...WHOLES }), ...OWN]);
  const { scheme = "http" } = optionsOf(settings, { scheme: "scheme" }, oneOfSetting(["http", "https"]));
  const { prefix = "", suffix = "" } = optionsOf(settings, { prefix: "prefix", suffix: "suffix" }, textSetting);
  // A region has neither dots nor a port.
  const where = /[.:]|^localhost$/.test(place) ? { endpoint: `${scheme}://${place}` } : { region: place };
  return {
    ...where,
    ...(prefix === "" && suffix === "" ? {} : { queue: (topic: string) => `${prefix}${topic}${suffix}` }),
    ...optionsOf(settings, TEXTS, textSetting),
    ...optionsOf(settings, WHOLES, wholeSetting),
  };
}
