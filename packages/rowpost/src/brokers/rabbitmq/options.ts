import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { OutgoingMessage } from "../broker.ts";
import { type Checked, numberKinds, numbersOf } from "../settings/checked.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import type { RabbitmqConnection } from "./amqp.ts";
import { type RabbitmqServer, serversFrom } from "./servers.ts";

/** Destination of a message in RabbitMQ. */
export interface RabbitmqRoute {
  /** Default "": the default exchange, where the routing key is the name of a queue. */
  readonly exchange?: string | undefined;
  /** At most 255 bytes. */
  readonly routingKey: string;
}

/** Options of {@link rabbitmq}. Exactly one of `url` and `connection`. */
export interface RabbitmqOptions {
  /**
   * `amqp://user:password@host:5672/vhost`, or `amqps://` for TLS. Several nodes of a cluster as a
   * list: the first one that answers is used until it fails, then the next. User and password
   * default to guest.
   */
  readonly url?: string | readonly string[] | undefined;
  /** An open connection of amqplib. It is left open; once it ends, publishing fails. */
  readonly connection?: RabbitmqConnection | undefined;
  /** With `url`: wins over the user in it. */
  readonly username?: string | undefined;
  /** Password of `username`. */
  readonly password?: string | undefined;
  /** With `amqps:` URLs: trusted authorities and client certificate. */
  readonly tls?: TlsOptions | undefined;
  /** Exchange of all messages, with the topic as routing key. Default "": the topic's queue. */
  readonly exchange?: string | undefined;
  /**
   * Exchange and routing key of a message; the same for all messages of an ordering key. If it
   * throws, the message fails.
   */
  readonly route?: ((message: OutgoingMessage) => RabbitmqRoute) | undefined;
  /** Most unconfirmed messages, over all calls, 1 to 65,535. Default 1,024. */
  readonly maxInFlight?: number | undefined;
  /** Larger bodies fail without sending. Default 16,777,216, the default of RabbitMQ 4. */
  readonly maxBodyBytes?: number | undefined;
  /** Time for a connection or a channel to open, 100 to 60,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * With `url`: two intervals without a sign of life end the connection; 1 to 3,600, 0 for never.
   * Default 10.
   */
  readonly heartbeatSeconds?: number | undefined;
}

export interface Settings
  extends Checked<RabbitmqOptions, "route" | "maxInFlight" | "maxBodyBytes" | "connectTimeoutMs" | "heartbeatSeconds"> {
  readonly servers: readonly RabbitmqServer[];
  readonly connection: RabbitmqConnection | undefined;
  readonly tls: TlsOptions;
  readonly exchange: string | undefined;
}

const NUMBERS = {
  maxInFlight: [1_024, 1, 65_535],
  /**
   * A larger body closes the channel for its neighbors too. RabbitMQ 3 takes eight times as much.
   */
  maxBodyBytes: [16_777_216, 1, 536_870_912],
  connectTimeoutMs: [5_000, 100, 60_000],
  heartbeatSeconds: [10, 0, 3_600],
} as const;

const KINDS: OptionKinds<RabbitmqOptions> = {
  url: ["string", "array"],
  connection: "object",
  username: "string",
  password: "string",
  tls: "object",
  exchange: "string",
  route: "function",
  ...numberKinds(NUMBERS),
};

/** Throws `ConfigurationError`, which names the option. */
export function settingsFrom(options: RabbitmqOptions): Settings {
  checkOptions("rabbitmq broker", options, KINDS);
  const { url, connection, exchange, route } = options;
  if ((url === undefined) === (connection === undefined)) {
    throw new ConfigurationError("rabbitmq broker: give exactly one of url and connection");
  }
  checkWhatBelongsToUrl(options);
  if (exchange !== undefined && route !== undefined) {
    throw new ConfigurationError("rabbitmq broker: give one of exchange and route; the route says which exchange");
  }
  if (Buffer.byteLength(exchange ?? "") > 255) {
    throw new ConfigurationError("rabbitmq broker: exchange is longer than the 255 bytes that AMQP has for it");
  }
  const servers = url === undefined ? [] : serversFrom(url, options);
  if (options.tls !== undefined && servers.some(({ secure }) => !secure)) {
    throw new ConfigurationError(
      "rabbitmq broker: the tls option needs an amqps:// url, for every node; amqp:// is plaintext",
    );
  }
  return {
    servers,
    connection,
    tls: checkedTls(options.tls) ?? {},
    route: route ?? (({ topic }) => ({ exchange, routingKey: topic })),
    exchange: exchange === "" ? undefined : exchange,
    ...numbersOf(options, NUMBERS),
  };
}

/** Refused instead of ignored: a CA must not be given for a connection that does not check it. */
function checkWhatBelongsToUrl(options: RabbitmqOptions): void {
  if (options.connection === undefined) return;
  const names = ["username", "password", "tls", "heartbeatSeconds"] as const;
  if (names.every((name) => options[name] === undefined)) return;
  throw new ConfigurationError(
    "rabbitmq broker: username, password, tls and heartbeatSeconds belong to url; a connection has its own",
  );
}
