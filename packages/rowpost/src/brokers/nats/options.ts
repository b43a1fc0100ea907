import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressList } from "../settings/address-list.ts";
import { type Checked, numberKinds, numbersOf, optionalNumber, timeoutBounds } from "../settings/checked.ts";
import { type ServerAddress, serverAddress } from "../settings/server-address.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";
import { connectionFrom, type NatsConnection } from "./client.ts";

/** Options of {@link nats}. `servers`, or a `connection`; at most one way to log in. */
export interface NatsOptions {
  /**
   * Addresses, `host:port` or `nats://host:port` (default port 4222; IPv6 in brackets), as a list
   * or comma-separated. The first that answers is used until it fails, then the next. `tls://`
   * implies the option `tls`.
   */
  readonly servers?: string | readonly string[] | undefined;
  /** A `NatsConnection` to use instead of `servers`. It reconnects by itself and is left open. */
  readonly connection?: unknown;
  /** User for the login. */
  readonly user?: string | undefined;
  /** Password of `user`. */
  readonly password?: string | undefined;
  /** Token for the login. */
  readonly token?: string | undefined;
  /** Nkey seed (`SU…`) for the login. */
  readonly nkeySeed?: string | undefined;
  /** JWT and key for the login: the text of a `.creds` file. */
  readonly credentials?: string | undefined;
  /** `true`: the default authorities. Default: TLS only if the server requires it. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Name of the connection in the server's monitoring. Default `rowpost`. */
  readonly name?: string | undefined;
  /** Subject of a topic: a prefix, or a function. Default: the topic itself. */
  readonly subject?: string | ((topic: string) => string) | undefined;
  /** Stream that must take a topic's messages. Default: any that takes the subject. */
  readonly stream?: string | ((topic: string) => string | undefined) | undefined;
  /**
   * Prefix of each message id (`Nats-Msg-Id`), by which JetStream drops duplicates in a stream. Two
   * outboxes with the same types and keys that share a stream each need their own. Default: none.
   */
  readonly messageIdPrefix?: string | undefined;
  /** JetStream domain for looking up streams. Default: the connection's. */
  readonly domain?: string | undefined;
  /** Prefix of the subjects for receipts. Default `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /** Most messages in flight, over all publish calls, 1 to 10,000. Default 1024. */
  readonly maxInFlight?: number | undefined;
  /**
   * Larger bodies are refused without sending. Default: the server's limit, which includes headers.
   */
  readonly maxBodyBytes?: number | undefined;
  /** Time for a receipt, 100 to 600,000 ms. Default 10,000. After it the outcome is unknown. */
  readonly ackTimeoutMs?: number | undefined;
  /** Time for one server to accept the connection, 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Receives warnings. Default: `process.emitWarning`. */
  readonly onWarning?: ((warning: string) => void) | undefined;
}

export type Login =
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  | { readonly kind: "token" | "nkey" | "credentials"; readonly secret: string };

type Present =
  | "name"
  | "messageIdPrefix"
  | "inboxPrefix"
  | "maxInFlight"
  | "ackTimeoutMs"
  | "connectTimeoutMs"
  | "onWarning";

export interface Settings extends Checked<NatsOptions, Present> {
  readonly connection: NatsConnection | undefined;
  readonly servers: readonly ServerAddress[];
  readonly login: Login | undefined;
  readonly tls: TlsOptions | undefined;
  readonly subject: (topic: string) => string;
  readonly stream: (topic: string) => string | undefined;
  readonly onlyStream: string | undefined;
  readonly apiPrefix: string;
  readonly maxBodyBytes: number | undefined;
}

const NUMBERS = {
  /**
   * Messages without a receipt in a bare loop, 400-byte bodies and seven headers, server (2.9.10,
   * file storage) and client on the same two cores:
   *
   *   in flight      64     256     512    1024    2048
   *   messages/s    38k     49k     56k     72k     58k
   *
   * Above 10,000 in one stream the server throws messages away (`max_buffered_msgs`, since 2.11).
   */
  maxInFlight: [1024, 1, 10_000],
  /** Allows for a stalled disk or an election. JetStream recognizes a later retry by its id. */
  ackTimeoutMs: timeoutBounds(10_000),
  /**
   * Below the relay's publish timeout, so that a silent server is not mistaken for a slow receipt.
   */
  connectTimeoutMs: timeoutBounds(5000),
} as const;

const KINDS: OptionKinds<NatsOptions> = {
  servers: ["string", "array"],
  connection: "any",
  user: "string",
  password: "string",
  token: "string",
  nkeySeed: "string",
  credentials: "string",
  tls: ["boolean", "object"],
  name: "string",
  subject: ["string", "function"],
  stream: ["string", "function"],
  messageIdPrefix: "string",
  domain: "string",
  inboxPrefix: "string",
  maxBodyBytes: "number",
  onWarning: "function",
  ...numberKinds(NUMBERS),
};
const DEFAULT_PORT = 4222;

/** Throws `ConfigurationError`, which names the option and never a secret. */
export function settingsFrom(options: NatsOptions): Settings {
  checkOptions("nats broker", options, KINDS);
  const connection = options.connection === undefined ? undefined : ownConnection(options);
  const servers = connection === undefined ? serversFrom(options.servers) : { addresses: [], tls: false };
  const { stream, subject = "" } = options;
  if (typeof stream === "string") checkStreamName(stream);
  return {
    connection,
    servers: servers.addresses,
    login: loginFrom(options),
    tls: tlsFrom(options.tls, servers.tls),
    name: options.name ?? "rowpost",
    subject: typeof subject === "string" ? (topic) => `${subject}${topic}` : subject,
    stream: typeof stream === "function" ? stream : () => stream,
    onlyStream: typeof stream === "string" ? stream : undefined,
    messageIdPrefix: token("messageIdPrefix", options.messageIdPrefix ?? "", /^[!-~]*$/),
    apiPrefix: apiPrefixOf(options.domain),
    inboxPrefix: token("inboxPrefix", options.inboxPrefix ?? "_INBOX", /^[^\s.*>]+(\.[^\s.*>]+)*$/),
    maxBodyBytes: optionalNumber("maxBodyBytes", options.maxBodyBytes, 1),
    ...numbersOf(options, NUMBERS),
    onWarning:
      options.onWarning ?? ((warning) => process.emitWarning(warning, { type: "RowpostWarning", code: "NATS" })),
  };
}

function ownConnection(options: NatsOptions): NatsConnection {
  const names = ["servers", "user", "password", "token", "nkeySeed", "credentials", "tls", "name"] as const;
  const extra = names.filter((name) => options[name] !== undefined);
  if (extra.length > 0) {
    throw new ConfigurationError(`nats broker: ${extra.join(", ")} cannot be given together with a connection`);
  }
  return connectionFrom(options.connection);
}

function serversFrom(servers: NatsOptions["servers"]): { addresses: readonly ServerAddress[]; tls: boolean } {
  const used = addressList(servers ?? [], {
    account: "nats broker: no user, password or token in servers; they have options of their own",
    empty: 'nats broker: give servers, such as "127.0.0.1:4222", or a connection',
  });
  const form = { broker: "nats", schemes: ["nats", "tls"], defaultPort: DEFAULT_PORT };
  return { addresses: used.map((text) => serverAddress(text, form)), tls: used.some((text) => /^tls:/i.test(text)) };
}

function loginFrom({ user, password, token: text, nkeySeed, credentials }: NatsOptions): Login | undefined {
  const ways = [user ?? password, text, nkeySeed, credentials].filter((way) => way !== undefined);
  if (ways.length > 1) {
    throw new ConfigurationError(
      "nats broker: give one of user and password, token, nkeySeed, credentials, and not several",
    );
  }
  if (user !== undefined || password !== undefined) {
    if (!user || password === undefined) {
      throw new ConfigurationError("nats broker: user and password belong together: give both or none");
    }
    return { kind: "password", user, password };
  }
  if (text !== undefined) return { kind: "token", secret: secret("token", text) };
  if (nkeySeed !== undefined) return { kind: "nkey", secret: secret("nkeySeed", nkeySeed) };
  if (credentials !== undefined) return { kind: "credentials", secret: secret("credentials", credentials) };
  return undefined;
}

function secret(name: string, text: string): string {
  if (text.trim() === "") throw new ConfigurationError(`nats broker: ${name} is empty`);
  return text;
}

function tlsFrom(tls: NatsOptions["tls"], isAsked: boolean): TlsOptions | undefined {
  if (tls === false && isAsked) throw new ConfigurationError("nats broker: tls: false contradicts tls:// in servers");
  return checkedTls(tls ?? isAsked);
}

function apiPrefixOf(domain: string | undefined): string {
  return domain === undefined ? "$JS.API" : `$JS.${token("domain", domain, /^[^\s.*>]+$/)}.API`;
}

function checkStreamName(name: string): void {
  token("stream", name, /^[^\s.*>/\\]{1,255}$/);
}

function token(name: string, text: string, form: RegExp): string {
  if (form.test(text)) return text;
  throw new ConfigurationError(`nats broker: ${name} "${text}" holds what NATS does not allow there`);
}
