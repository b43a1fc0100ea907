/** What is used of `@nats-io/transport-node`, as structural types, and how it is loaded. */

import { ConfigurationError } from "../../runtime/errors.ts";
import { loadedPeer } from "../settings/peer.ts";

export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: { readonly code: number } | undefined;
}

/** Outgoing headers. The client only asks for their bytes. */
export interface EncodedHeaders {
  encode(): Uint8Array;
}

export interface NatsStatus {
  readonly type: string;
  readonly error?: unknown;
}

/** A `NatsConnection` of `@nats-io/nats-core`: made by us, or by the user. */
export interface NatsConnection {
  /** The server's information; undefined while not connected. */
  readonly info?: { readonly max_payload?: number } | undefined;
  publish(subject: string, data: Uint8Array, options: { reply: string; headers?: EncodedHeaders | undefined }): void;
  subscribe(
    subject: string,
    options: { callback: (error: Error | null, message: NatsMessage) => void },
  ): { unsubscribe(): void };
  /** Resolves when the server has answered a ping, and so has read everything written before. */
  flush(): Promise<void>;
  /** Every version has `stop`, although the type of 3.4 omits it. */
  status(): AsyncIterable<NatsStatus> & { stop?: () => void };
  /** Resolves when the connection is over, with the reason if there is one. */
  closed(): Promise<Error | undefined>;
  close(): Promise<void>;
  isClosed(): boolean;
}

export interface ConnectOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly reconnect: false;
  readonly noRandomize: true;
  readonly ignoreClusterUpdates: true;
  readonly noAsyncTraces: true;
  readonly timeout: number;
  readonly pingInterval: number;
  readonly maxPingOut: number;
  readonly inboxPrefix: string;
  readonly authenticator?: unknown;
  readonly tls?: Readonly<Record<string, unknown>> | undefined;
}

export interface NatsModule {
  connect(options: ConnectOptions): Promise<NatsConnection>;
  usernamePasswordAuthenticator(user: string, password: string): unknown;
  tokenAuthenticator(token: string): unknown;
  nkeyAuthenticator(seed: Uint8Array): unknown;
  credsAuthenticator(credentials: Uint8Array): unknown;
}

export function loadNats(): Promise<NatsModule> {
  const name = "@nats-io/transport-node";
  return loadedPeer(import("@nats-io/transport-node"), name, { neededFor: "rowpost/nats", range: "^3.0.0" });
}

/** Recognizes a connection by the methods used. Throws `ConfigurationError`. */
export function connectionFrom(value: unknown): NatsConnection {
  const methods = ["publish", "subscribe", "flush", "status", "closed", "close", "isClosed"];
  const candidate = value as Readonly<Record<string, unknown>> | null;
  const isConnection =
    typeof candidate === "object" &&
    candidate !== null &&
    methods.every((name) => typeof candidate[name] === "function");
  if (isConnection) return value as NatsConnection;
  throw new ConfigurationError(
    "nats broker: connection must be a NatsConnection of @nats-io/transport-node, such as `await connect({ servers })` gives (not its promise, and not a JetStream client)",
  );
}
