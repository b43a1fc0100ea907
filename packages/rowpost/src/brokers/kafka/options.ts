import { hostname } from "node:os";
import { checkOptions, type OptionKinds, oneOf } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressList } from "../settings/address-list.ts";
import { type Checked, numberKinds, numbersOf, timeoutBounds } from "../settings/checked.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import { type GivenClient, type KafkaClient, recognize } from "./given-client.ts";

/** What {@link KafkaOptions.driver} may be. */
export const DRIVERS = ["platformatic", "kafkajs"] as const;
/** What {@link KafkaSaslOptions.mechanism} may be. */
export const MECHANISMS = ["plain", "scram-sha-256", "scram-sha-512"] as const;

/** SASL login. */
export interface KafkaSaslOptions {
  /** Default `plain`. */
  readonly mechanism?: "plain" | "scram-sha-256" | "scram-sha-512" | undefined;
  /** User name. */
  readonly username: string;
  /** Password of `username`. */
  readonly password: string;
}

/** Options of {@link kafka}: either `brokers` or a `client`. */
export interface KafkaOptions {
  /** Some brokers of the cluster, `host:port` (default port 9092), as a list or comma-separated. */
  readonly brokers?: string | readonly string[] | undefined;
  /**
   * A client of yours instead of addresses, told by its shape and never closed by us: the `Kafka`
   * object of kafkajs, or a `Producer` of \@platformatic/kafka. It must not be idempotent, nor
   * change what it sends (serializers, a schema registry).
   */
  readonly client?: KafkaClient | undefined;
  /** Client id in the brokers' logs and quotas. Default `rowpost@` and the host name. */
  readonly clientId?: string | undefined;
  /** TLS with the default authorities (`true`) or with these settings. Default false: plaintext. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Login. Default: none. */
  readonly sasl?: KafkaSaslOptions | undefined;
  /** Default: \@platformatic/kafka where it is installed and runs on this Node.js, else kafkajs. */
  readonly driver?: "platformatic" | "kafkajs" | undefined;
  /** Time to connect to a broker, login included: 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * Time for a produce request, 100 to 600,000 ms. Default 10,000. After it the outcome is unknown.
   */
  readonly requestTimeoutMs?: number | undefined;
}

export interface Settings extends Checked<KafkaOptions, "clientId" | "connectTimeoutMs" | "requestTimeoutMs"> {
  readonly brokers: readonly string[];
  readonly given: GivenClient | undefined;
  readonly tls: TlsOptions | undefined;
  readonly sasl: Checked<KafkaSaslOptions, keyof KafkaSaslOptions> | undefined;
  readonly driver: KafkaOptions["driver"];
}

const SASL_KINDS: OptionKinds<KafkaSaslOptions> = { mechanism: "string", username: "string", password: "string" };

const DEFAULT_PORT = 9092;
const NUMBERS = {
  connectTimeoutMs: timeoutBounds(5000),
  /** Allows for a stalled disk or a leader election. A retry after it can make a duplicate. */
  requestTimeoutMs: timeoutBounds(10_000),
} as const;

const KINDS: OptionKinds<KafkaOptions> = {
  brokers: ["string", "array"],
  client: ["object", "function"],
  clientId: "string",
  tls: ["boolean", "object"],
  sasl: "object",
  driver: "string",
  ...numberKinds(NUMBERS),
};

const OF_THE_CLIENT = ["brokers", "clientId", "tls", "sasl", "driver"] as const;

/** Checks options. Throws {@link ConfigurationError}, which names the option. */
export function settingsFrom(options: KafkaOptions): Settings {
  checkOptions("kafka broker", options, KINDS);
  const given = options.client === undefined ? undefined : recognize(options.client);
  const extra = OF_THE_CLIENT.find((name) => options[name] !== undefined);
  if (given !== undefined && extra !== undefined) {
    throw new ConfigurationError(`${extra} and client exclude each other: the client has its own`);
  }
  return {
    brokers: given === undefined ? brokersFrom(options.brokers ?? "") : [],
    given,
    clientId: options.clientId ?? `rowpost@${hostname().replace(/[^A-Za-z0-9._-]/g, "_")}`,
    tls: checkedTls(options.tls),
    sasl: saslFrom(options.sasl),
    driver: oneOf("driver", options.driver, [undefined, ...DRIVERS]),
    ...numbersOf(options, NUMBERS),
  };
}

function brokersFrom(brokers: string | readonly string[]): string[] {
  const texts = addressList(brokers, {
    account: "brokers: no user or password in brokers; they belong in the option sasl",
    empty: 'brokers is empty; give the address of a broker, such as "127.0.0.1:9092", or a client',
  });
  return texts.map((text) => {
    // No IPv6 literals: kafkajs splits an address at its first colon.
    const [, host, port = String(DEFAULT_PORT)] = /^([^:[\]/@\s]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
    if (host === undefined || Number(port) < 1 || Number(port) > 65_535) {
      throw new ConfigurationError(`brokers: "${text}" is not host:port, such as kafka1:9092`);
    }
    return `${host}:${port}`;
  });
}

function saslFrom(sasl: KafkaSaslOptions | undefined): Settings["sasl"] {
  if (sasl === undefined) return undefined;
  checkOptions("kafka broker, sasl", sasl, SASL_KINDS);
  const mechanism = oneOf("sasl.mechanism", sasl.mechanism ?? "plain", MECHANISMS);
  if (!sasl.username || !sasl.password) {
    throw new ConfigurationError("sasl.username and sasl.password belong together: give both, or leave sasl out");
  }
  return { mechanism, username: sasl.username, password: sasl.password };
}
