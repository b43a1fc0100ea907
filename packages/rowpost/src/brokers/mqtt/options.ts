import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressList } from "../settings/address-list.ts";
import { type Checked, numberKinds, numbersOf, optionalNumber, timeoutBounds } from "../settings/checked.ts";
import { type ServerAddress, serverAddress } from "../settings/server-address.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";

/** Options of {@link mqtt}. */
export interface MqttOptions {
  /**
   * Addresses, `host:port` or `mqtt://host:port` (IPv6 in brackets; default port 1883, with TLS
   * 8883), as a list or comma-separated. The first that answers is used until it fails, then the
   * next. `mqtts://` implies the option `tls`.
   */
  readonly servers: string | readonly string[];
  /** User for the login. */
  readonly user?: string | undefined;
  /** Password of `user`. */
  readonly password?: string | undefined;
  /** `true`: the default authorities. Default: no TLS. */
  readonly tls?: boolean | TlsOptions | undefined;
  /**
   * Client identifier. A server disconnects the previous client with the same one, so each process
   * needs its own. Default: `rowpost-` and a random text, new for each connection.
   */
  readonly clientId?: string | undefined;
  /** Prefix of each topic. Default: none. */
  readonly prefix?: string | undefined;
  /**
   * True: a message without a subscriber failed and is retried. Default false: it counts as sent,
   * as the protocol says.
   */
  readonly requireSubscribers?: boolean | undefined;
  /** Most messages of a topic in flight, 1 to 65,535. Default 1024. */
  readonly maxInFlight?: number | undefined;
  /** Larger bodies are refused without sending. Default: the server's packet size. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Longest time without any receipt, 100 to 600,000 ms. Default 10,000. After it the outcome is
   * unknown.
   */
  readonly ackTimeoutMs?: number | undefined;
  /** Time for one server to accept the connection, 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

type Present = "prefix" | "requireSubscribers" | "maxInFlight" | "ackTimeoutMs" | "connectTimeoutMs";

export interface Settings extends Checked<MqttOptions, Present> {
  readonly servers: readonly ServerAddress[];
  readonly login: { readonly username: string; readonly password: string } | undefined;
  readonly tls: TlsOptions | undefined;
  readonly clientId: string | undefined;
  readonly maxBodyBytes: number | undefined;
}

const NUMBERS = {
  /** The server's Receive Maximum is usually lower: 20 on Mosquitto. */
  maxInFlight: [1024, 1, 65_535],
  ackTimeoutMs: timeoutBounds(10_000),
  /**
   * Below the relay's publish timeout, so that a silent server is not mistaken for a slow receipt.
   */
  connectTimeoutMs: timeoutBounds(5000),
} as const;

const KINDS: OptionKinds<MqttOptions> = {
  servers: ["string", "array"],
  user: "string",
  password: "string",
  tls: ["boolean", "object"],
  clientId: "string",
  prefix: "string",
  requireSubscribers: "boolean",
  maxBodyBytes: "number",
  ...numberKinds(NUMBERS),
};

/** Throws `ConfigurationError`, which names the option and never a secret. */
export function settingsFrom(options: MqttOptions): Settings {
  checkOptions("mqtt broker", options, KINDS);
  const { user, password, tls, clientId, prefix = "", requireSubscribers = false } = options;
  const texts = addressList(options.servers, {
    account: "mqtt broker: no user or password in servers; they have options of their own",
    empty: 'mqtt broker: give servers, such as "127.0.0.1:1883"',
  });
  const isSecure = texts.some((text) => /^mqtts:/i.test(text));
  if (tls === false && isSecure)
    throw new ConfigurationError("mqtt broker: tls: false contradicts mqtts:// in servers");
  if ((user === undefined) !== (password === undefined) || user === "") {
    throw new ConfigurationError("mqtt broker: user and password belong together: give both or none");
  }
  if (clientId === "") throw new ConfigurationError("mqtt broker: clientId is empty; leave it out");
  const checked = checkedTls(tls ?? isSecure);
  const defaultPort = checked === undefined ? 1883 : 8883;
  return {
    servers: texts.map((text) => serverAddress(text, { broker: "mqtt", schemes: ["mqtt", "mqtts"], defaultPort })),
    login: user === undefined || password === undefined ? undefined : { username: user, password },
    tls: checked,
    clientId,
    prefix,
    requireSubscribers,
    maxBodyBytes: optionalNumber("maxBodyBytes", options.maxBodyBytes, 1),
    ...numbersOf(options, NUMBERS),
  };
}
