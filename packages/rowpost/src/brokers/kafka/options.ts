/** Options of the Kafka broker, and what is checked before anything is opened. */

import { hostname } from "node:os";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { addressList } from "../settings/address-list.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import { type GivenClient, type KafkaClient, recognize } from "./given-client.ts";

/** What {@link KafkaOptions.driver} may be. */
export const DRIVERS = ["platformatic", "kafkajs"] as const;
/** What {@link KafkaSaslOptions.mechanism} may be. */
export const MECHANISMS = ["plain", "scram-sha-256", "scram-sha-512"] as const;

/** How a client proves who it is. */
export interface KafkaSaslOptions {
  /** Default `plain`. */
  readonly mechanism?: "plain" | "scram-sha-256" | "scram-sha-512" | undefined;
  readonly username: string;
  readonly password: string;
}

/** Options of {@link kafka}: either `brokers` or a `client`. */
export interface KafkaOptions {
  /** Some brokers of the cluster, `host:port` (default 9092), as a list or with commas. */
  readonly brokers?: string | readonly string[] | undefined;
  /**
   * A client of yours instead of addresses, told by its shape and never closed by us: the `Kafka`
   * object of kafkajs, or a `Producer` of \@platformatic/kafka. It must not be idempotent, nor
   * change what it sends (serializers, a schema registry).
   */
  readonly client?: KafkaClient | undefined;
  /** What the brokers' logs and quotas call us. Default `rowpost@` and the host's name. */
  readonly clientId?: string | undefined;
  /** TLS with the usual authorities (`true`), or with these settings. Default false: plaintext. */
  readonly tls?: boolean | TlsOptions | undefined;
  readonly sasl?: KafkaSaslOptions | undefined;
  /** Default: \@platformatic/kafka where it is installed and runs on this Node.js, else kafkajs. */
  readonly driver?: "platformatic" | "kafkajs" | undefined;
  /** To a broker that answers, login included: 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Of a produce request, 100 to 600,000 ms. Default 10,000. Afterwards its outcome is unknown. */
  readonly requestTimeoutMs?: number | undefined;
}

/** {@link KafkaSaslOptions}, complete. */
export interface Account {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512";
  readonly username: string;
  readonly password: string;
}

/** Checked options with their defaults. */
export interface Settings {
  /** `host:port` each; empty with a client of the user's. */
  readonly brokers: readonly string[];
  readonly given: GivenClient | undefined;
  readonly clientId: string;
  readonly tls: TlsOptions | undefined;
  readonly sasl: Account | undefined;
  readonly driver: "platformatic" | "kafkajs" | undefined;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

const DEFAULT_PORT = 9092;
const DEFAULT_CONNECT_TIMEOUT_MS = 5000;
/** A stalled disk, or the election of a leader. After it a retry can make a duplicate. */
const DEFAULT_REQUEST_TIMEOUT_MS = 10_000;

/** What a client of the user's has settled already. */
const OF_THE_CLIENT = ["brokers", "clientId", "tls", "sasl", "driver"] as const;

/** Checks options. Throws {@link ConfigurationError}, which names the option. */
export function settingsFrom(options: KafkaOptions): Settings {
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
    driver: oneOf("driver", options.driver, DRIVERS),
    connectTimeoutMs: wholeNumber(
      "connectTimeoutMs",
      options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      100,
      600_000,
    ),
    requestTimeoutMs: wholeNumber(
      "requestTimeoutMs",
      options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS,
      100,
      600_000,
    ),
  };
}

function brokersFrom(brokers: string | readonly string[]): string[] {
  const texts = addressList(brokers, {
    account: "brokers: no user or password in brokers; they belong in the option sasl",
    empty: 'brokers is empty; give the address of a broker, such as "127.0.0.1:9092", or a client',
  });
  return texts.map((text) => {
    // No IPv6 literals: kafkajs cuts an address at its first colon.
    const [, host, port = String(DEFAULT_PORT)] = /^([^:[\]/@\s]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
    if (host === undefined || Number(port) < 1 || Number(port) > 65_535) {
      throw new ConfigurationError(`brokers: "${text}" is not host:port, such as kafka1:9092`);
    }
    return `${host}:${port}`;
  });
}

function saslFrom(sasl: KafkaSaslOptions | undefined): Account | undefined {
  if (sasl === undefined) return undefined;
  const mechanism = oneOf("sasl.mechanism", sasl.mechanism, MECHANISMS) ?? "plain";
  if (!sasl.username || !sasl.password) {
    throw new ConfigurationError("sasl.username and sasl.password belong together: give both, or leave sasl out");
  }
  return { mechanism, username: sasl.username, password: sasl.password };
}

function oneOf<Value extends string>(
  name: string,
  value: Value | undefined,
  known: readonly Value[],
): Value | undefined {
  if (value === undefined || known.includes(value)) return value;
  throw new ConfigurationError(`${name} must be ${known.join(", ")}; not "${value}"`);
}
