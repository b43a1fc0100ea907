import { checkOptions, type OptionKinds, oneOf } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type Checked, numberKinds, numbersOf, timeoutBounds } from "../settings/checked.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import { type AccessKeys, accessKeysIn } from "./access-keys.ts";
import { type Endpoint, endpointsFrom } from "./endpoints.ts";

/** Options of {@link rocketmq}. */
export interface RocketmqOptions {
  /**
   * gRPC addresses of the proxy, `host:port` (default port 8081; IPv6 in brackets), as a list or
   * comma-separated. The first that answers is used until it fails, then the next.
   */
  readonly endpoints: string | readonly string[];
  /** Namespace of the topics. Default: none. */
  readonly namespace?: string | undefined;
  /** TLS with the default authorities (`true`) or with these settings. Default false: plaintext. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Access key, if the cluster requires one. */
  readonly accessKey?: string | undefined;
  /** Secret of `accessKey`. */
  readonly secretKey?: string | undefined;
  /** Token of a temporary access key. */
  readonly sessionToken?: string | undefined;
  /** Most messages without a group in one request, 1 to 1024. Default 256. */
  readonly batchSize?: number | undefined;
  /** Most requests in flight, over all publish calls, 1 to 1024. Default 64. */
  readonly maxInFlight?: number | undefined;
  /** Time for one request, 100 to 600,000 ms. Default 10,000. After it the outcome is unknown. */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * For a message with an ordering key on a topic that is not FIFO, and so unordered for consumers:
   * publish one after the other with a warning for the topic (`warn`, the default), without it
   * (`publish`), or fail the message (`fail`).
   */
  readonly unorderedTopic?: "warn" | "publish" | "fail" | undefined;
  /** Receives warnings. Default: `process.emitWarning`. */
  readonly onWarning?: ((warning: string) => void) | undefined;
}

type Present = "namespace" | "batchSize" | "maxInFlight" | "requestTimeoutMs" | "unorderedTopic" | "onWarning";

export interface Settings extends Checked<RocketmqOptions, Present> {
  readonly endpoints: readonly Endpoint[];
  readonly tls: TlsOptions | undefined;
  readonly keys: AccessKeys | undefined;
}

const NUMBERS = {
  /**
   * CPU in milliseconds for 1,000 messages of 400 bytes and four properties, four calls of 500 at a
   * time, server and client on the same two cores, medians of five rounds:
   *
   *   batch           64    128    256    500
   *   server        21.2   21.6   17.8   16.4
   *   client        14.0    9.0    8.5    7.0
   *
   * More than 256 gains little, and more messages share the fate of one request.
   */
  batchSize: [256, 1, 1024],
  /**
   * FIFO, one message a request: 2.5-2.9k/s with 16 in flight, 3.2-5.1k with 32, 5.3-7.7k from 64
   * on.
   */
  maxInFlight: [64, 1, 1024],
  /** Allows for a stalled disk or garbage collection. A later retry can make a duplicate. */
  requestTimeoutMs: timeoutBounds(10_000),
} as const;

const KINDS: OptionKinds<RocketmqOptions> = {
  endpoints: ["string", "array"],
  namespace: "string",
  tls: ["boolean", "object"],
  accessKey: "string",
  secretKey: "string",
  sessionToken: "string",
  unorderedTopic: "string",
  onWarning: "function",
  ...numberKinds(NUMBERS),
};

/** Checks options. Throws {@link ConfigurationError}, which names the option. */
export function settingsFrom(options: RocketmqOptions): Settings {
  checkOptions("rocketmq broker", options, KINDS);
  return {
    endpoints: endpointsFrom(options.endpoints ?? ""),
    namespace: carried("namespace", options.namespace ?? ""),
    tls: checkedTls(options.tls),
    keys: keysFrom(options),
    ...numbersOf(options, NUMBERS),
    unorderedTopic: oneOf("unorderedTopic", options.unorderedTopic ?? "warn", ["warn", "publish", "fail"]),
    onWarning:
      options.onWarning ?? ((warning) => process.emitWarning(warning, { type: "RowpostWarning", code: "ROCKETMQ" })),
  };
}

function keysFrom(options: RocketmqOptions): AccessKeys | undefined {
  const keys = accessKeysIn(options);
  if (keys !== undefined) carried("accessKey", keys.accessKey);
  if (keys?.sessionToken !== undefined) carried("sessionToken", keys.sessionToken);
  return keys;
}

/**
 * A gRPC header holds printable ASCII. The error leaves the value out, since it may be a secret.
 */
function carried(name: string, value: string): string {
  if (/^[\x20-\x7e]*$/.test(value)) return value;
  throw new ConfigurationError(
    `${name} has a character that no gRPC header can carry; only printable ASCII can stand there (is there a line break at its end?)`,
  );
}
