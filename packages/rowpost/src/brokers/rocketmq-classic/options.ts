import { checkOptions, type OptionKinds, oneOf } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type AccessKeys, accessKeysIn } from "../rocketmq/access-keys.ts";
import { type Checked, numberKinds, numbersOf, timeoutBounds } from "../settings/checked.ts";
import type { ServerAddress } from "../settings/server-address.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import { nameServersFrom } from "./address.ts";

/** Options of {@link rocketmqClassic}. */
export interface RocketmqClassicOptions {
  /**
   * Name servers, `host:port` (default port 9876; IPv6 in brackets), as a list or separated by
   * semicolons. One is asked until it fails, then the next.
   */
  readonly nameServers: string | readonly string[];
  /** Namespace of the topics, which then are `namespace%topic`. Default: none. */
  readonly namespace?: string | undefined;
  /** TLS with the default authorities (`true`) or with these settings. Default false: plaintext. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Access key, if the cluster requires one. */
  readonly accessKey?: string | undefined;
  /** Secret of `accessKey`. */
  readonly secretKey?: string | undefined;
  /** Token of a temporary access key. */
  readonly sessionToken?: string | undefined;
  /** Producer group shown to administrators. Default `rowpost`. */
  readonly producerGroup?: string | undefined;
  /** Most messages in one request, 1 to 1024. Default 256. */
  readonly batchSize?: number | undefined;
  /** Most requests of one topic in flight, over all calls, 1 to 1024. Default 64. */
  readonly maxInFlight?: number | undefined;
  /** Time for one request, 100 to 600,000 ms. Default 10,000. After it the outcome is unknown. */
  readonly requestTimeoutMs?: number | undefined;
  /** Time to connect and greet, 100 to 600,000 ms. Default 3,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Largest body in bytes: the brokers' `maxMessageSize`. Default 4,194,304, as theirs. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * For a message stored less safely than the broker is configured for: FLUSH_DISK_TIMEOUT,
   * FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE. `fail` (the default): it is published again.
   * `accept`: it is sent.
   */
  readonly weakReceipts?: "fail" | "accept" | undefined;
  /**
   * Maps a broker address from the name servers to the one to connect to, for clusters behind a
   * tunnel or in containers. Takes and returns `host:port`. Default: unchanged.
   */
  readonly brokerAddress?: ((address: string) => string) | undefined;
}

type Present =
  | ("namespace" | "producerGroup" | "batchSize" | "maxInFlight" | "requestTimeoutMs" | "connectTimeoutMs")
  | ("maxBodyBytes" | "brokerAddress");

export interface Settings extends Checked<RocketmqClassicOptions, Present> {
  readonly nameServers: readonly ServerAddress[];
  readonly tls: TlsOptions | undefined;
  readonly keys: AccessKeys | undefined;
  readonly acceptsWeakReceipts: boolean;
}

const NAME = /^[%|a-zA-Z0-9_-]+$/;

const NUMBERS = {
  /** As in the gRPC adapter: larger batches gain little and share the fate of one request. */
  batchSize: [256, 1, 1024],
  maxInFlight: [64, 1, 1024],
  /** Allows for a stalled disk or garbage collection. A later retry can make a duplicate. */
  requestTimeoutMs: timeoutBounds(10_000),
  connectTimeoutMs: timeoutBounds(3000),
  /** A frame holds 16 MB in total. */
  maxBodyBytes: [4_194_304, 1, 16_000_000],
} as const;

const KINDS: OptionKinds<RocketmqClassicOptions> = {
  nameServers: ["string", "array"],
  namespace: "string",
  tls: ["boolean", "object"],
  accessKey: "string",
  secretKey: "string",
  sessionToken: "string",
  producerGroup: "string",
  weakReceipts: "string",
  brokerAddress: "function",
  ...numberKinds(NUMBERS),
};

/** Checks options. Throws {@link ConfigurationError}, which names the option. */
export function settingsFrom(options: RocketmqClassicOptions): Settings {
  checkOptions("rocketmqClassic broker", options, KINDS);
  const weakReceipts = oneOf("weakReceipts", options.weakReceipts ?? "fail", ["fail", "accept"]);
  const { namespace = "", producerGroup = "rowpost" } = options;
  return {
    nameServers: nameServersFrom(options.nameServers ?? ""),
    namespace: namespace === "" ? "" : plain("namespace", namespace),
    producerGroup: plain("producerGroup", producerGroup),
    tls: checkedTls(options.tls),
    keys: accessKeysIn(options),
    ...numbersOf(options, NUMBERS),
    acceptsWeakReceipts: weakReceipts === "accept",
    brokerAddress: options.brokerAddress ?? ((address) => address),
  };
}

function plain(name: string, value: string): string {
  if (NAME.test(value) && value.length <= MOST_CHARACTERS) return value;
  throw new ConfigurationError(
    `${name} may have letters, digits, %, |, - and _, and at most ${MOST_CHARACTERS} of them`,
  );
}

const MOST_CHARACTERS = 120;
