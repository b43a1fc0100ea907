import { checkOptions, type OptionKinds, oneOf } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type Checked, numberKinds, numbersOf, optionalNumber, timeoutBounds } from "../settings/checked.ts";
import type { TlsOptions } from "../settings/tls-options.ts";
import { addressOf } from "./address.ts";
import type { ClientFactory, RedisClient } from "./client.ts";
import { duplicatesOf, ownClients } from "./client.ts";

/** Options of {@link redis}. Exactly one of `url` and `client`. */
export interface RedisOptions {
  /** `redis://[user[:password]@]host[:6379][/db]`, or `rediss://` for TLS. */
  readonly url?: string | URL | undefined;
  /**
   * A `Redis` or `Cluster` of ioredis or iovalkey, also with sentinels. The broker connects with
   * its `duplicate()`; the client itself is not used and not closed.
   */
  readonly client?: RedisClient | undefined;
  /** With `url`: the user, if the url has none. */
  readonly username?: string | undefined;
  /** Password of `username`, or of the default user. */
  readonly password?: string | undefined;
  /** With a `rediss://` url. */
  readonly tls?: TlsOptions | undefined;
  /**
   * Stream of a topic. Default: the topic itself, prefixed with the `keyPrefix` of a client passed
   * in. In a cluster a stream lives on one node, chosen by `{…}` in its key.
   */
  readonly streamOf?: ((topic: string) => string) | undefined;
  /**
   * Approximate length of a stream (`MAXLEN ~`, at least 1). Older entries are dropped and lost if
   * not yet read. Default: none are dropped, and consumers trim what they have handled.
   */
  readonly maxLength?: number | undefined;
  /**
   * For a topic without a stream: create it (`create`, the default), or fail its messages until it
   * exists (`fail`; Redis 6.2 and newer).
   */
  readonly missingStream?: "create" | "fail" | undefined;
  /**
   * Replicas that must have a message before it counts as sent (WAIT). 0, the default: the
   * primary's reply is enough. Messages on fewer replicas are published again.
   */
  readonly minReplicas?: number | undefined;
  /** Wait for the replicas, 1 to 600,000 ms. Default 2,000, well below the publish timeout. */
  readonly replicaTimeoutMs?: number | undefined;
  /**
   * Larger bodies are refused without sending. Default: the server's `proto-max-bulk-len`, 512 MB.
   */
  readonly maxBodyBytes?: number | undefined;
  /** Time from the first packet to the server's greeting, 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Publish even if full memory drops whole streams (`allkeys-…` policies). Default false. */
  readonly allowEviction?: boolean | undefined;
}

export interface Settings
  extends Checked<
    RedisOptions,
    "streamOf" | "minReplicas" | "replicaTimeoutMs" | "connectTimeoutMs" | "allowEviction"
  > {
  readonly createClient: ClientFactory;
  readonly label: string;
  readonly target: string | undefined;
  readonly xaddArguments: readonly string[];
  readonly createsStreams: boolean;
  readonly maxBodyBytes: number | undefined;
}

const NUMBERS = {
  minReplicas: [0, 0, 1_000],
  replicaTimeoutMs: [2_000, 1, 600_000],
  connectTimeoutMs: timeoutBounds(5_000),
} as const;

const KINDS: OptionKinds<RedisOptions> = {
  url: ["string", "object"],
  client: ["object", "function"],
  username: "string",
  password: "string",
  tls: "object",
  streamOf: "function",
  maxLength: "number",
  missingStream: "string",
  maxBodyBytes: "number",
  allowEviction: "boolean",
  ...numberKinds(NUMBERS),
};

/** Throws {@link ConfigurationError}, which names the option and never holds a password. */
export function settingsFrom(options: RedisOptions): Settings {
  checkOptions("redis broker", options, KINDS);
  const missingStream = oneOf("redis broker: missingStream", options.missingStream ?? "create", ["create", "fail"]);
  const maxLength = optionalNumber("maxLength", options.maxLength, 1);
  const numbers = numbersOf(options, NUMBERS);
  return {
    ...clientsOf(options, numbers.connectTimeoutMs),
    streamOf: options.streamOf ?? ((topic) => topic),
    xaddArguments: [
      ...(missingStream === "fail" ? ["NOMKSTREAM"] : []),
      ...(maxLength === undefined ? [] : ["MAXLEN", "~", String(maxLength)]),
      "*",
    ],
    createsStreams: missingStream === "create",
    maxBodyBytes: optionalNumber("maxBodyBytes", options.maxBodyBytes, 1),
    ...numbers,
    allowEviction: options.allowEviction ?? false,
  };
}

function clientsOf(
  options: RedisOptions,
  connectTimeoutMs: number,
): Pick<Settings, "createClient" | "label" | "target"> {
  const { url, client, username, password, tls } = options;
  if ((url === undefined) === (client === undefined)) {
    throw new ConfigurationError("redis broker: give exactly one of url and client");
  }
  if (client !== undefined) {
    if (username !== undefined || password !== undefined || tls !== undefined) {
      throw new ConfigurationError("redis broker: username, password and tls belong to url; a client has its own");
    }
    return { createClient: duplicatesOf(client), label: "the given client's server", target: undefined };
  }
  const address = addressOf(url ?? "", options);
  const { host, port } = address;
  const label = `${address.tls === undefined ? "redis" : "rediss"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return { createClient: ownClients(address, connectTimeoutMs), label, target: `${label}/${address.db}` };
}
