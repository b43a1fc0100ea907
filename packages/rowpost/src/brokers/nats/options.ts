/** Options of the NATS broker, and what is checked before anything is opened. */

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
   * Addresses, `host:port` or `nats://host:port` (4222 when left out; IPv6 in brackets); several as
   * a list or separated by commas. The first one that answers is used until it fails, then the
   * next. `tls://` stands for the option `tls`.
   */
  readonly servers?: string | readonly string[] | undefined;
  /** Instead of `servers`: a `NatsConnection` of yours, with its own reconnects; left open. */
  readonly connection?: unknown;
  /** Log in with a user and a password. */
  readonly user?: string | undefined;
  /** Password of `user`. */
  readonly password?: string | undefined;
  /** Log in with a token. */
  readonly token?: string | undefined;
  /** Log in with an nkey: its seed (`SU…`). */
  readonly nkeySeed?: string | undefined;
  /** Log in with a JWT and its key: the text of a `.creds` file. */
  readonly credentials?: string | undefined;
  /** `true`: the usual authorities. Default: TLS only where the server demands it. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Name of the connection in the server's monitoring. Default `rowpost`. */
  readonly name?: string | undefined;
  /** Subject of a topic: a text that is put before it, or a function. Default: the topic itself. */
  readonly subject?: string | ((topic: string) => string) | undefined;
  /** Stream that must take a topic's messages. Default: whichever takes the subject. */
  readonly stream?: string | ((topic: string) => string | undefined) | undefined;
  /**
   * Put before each message id (`Nats-Msg-Id`). JetStream drops copies by it, stream-wide: when two
   * outboxes with the same types and keys publish into one stream, each needs a prefix of its own.
   * Default: none.
   */
  readonly messageIdPrefix?: string | undefined;
  /** JetStream domain, for asking which streams there are. Default: the connection's own. */
  readonly domain?: string | undefined;
  /** Where receipts come to, if not below `_INBOX`, the default. */
  readonly inboxPrefix?: string | undefined;
  /** Most messages without a receipt at once, over all publish calls, 1 to 10,000. Default 1024. */
  readonly maxInFlight?: number | undefined;
  /** Larger bodies are refused unasked. Default: the server's limit, which counts headers too. */
  readonly maxBodyBytes?: number | undefined;
  /** For a receipt, 100 to 600,000 ms. Default 10,000. Afterwards the outcome is unknown. */
  readonly ackTimeoutMs?: number | undefined;
  /** For one server to accept the connection, 100 to 600,000 ms. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Takes warnings. Default: `process.emitWarning`. */
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
  /** Undefined: we connect ourselves. */
  readonly connection: NatsConnection | undefined;
  readonly servers: readonly ServerAddress[];
  readonly login: Login | undefined;
  readonly tls: TlsOptions | undefined;
  readonly subject: (topic: string) => string;
  readonly stream: (topic: string) => string | undefined;
  /** The stream when it is the same for all topics. */
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
  /** A stalled disk, or an election. A retry after it is known to JetStream by its id. */
  ackTimeoutMs: timeoutBounds(10_000),
  /** Below the relay's publish timeout: a silent server is not taken for a slow receipt. */
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

/** Checks options. Throws `ConfigurationError`, which names the option and never a secret. */
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
