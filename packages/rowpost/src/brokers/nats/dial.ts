/**
 * Connects to one server within a deadline, and cleans up if that fails.
 *
 * The client (3.4) cannot do this alone: its `connect` cannot be aborted while a server accepts and
 * stays silent, and after its own timeout it leaves the socket open, which keeps the process alive.
 * So this module records its sockets as Node.js creates them.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { isIP, Socket } from "node:net";
import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { addressLabel, type ServerAddress } from "../settings/server-address.ts";
import { nodeTls } from "../settings/tls-options.ts";
import type { NatsConnection, NatsModule } from "./client.ts";
import { describeConnectError } from "./failures.ts";
import type { Settings } from "./options.ts";

export interface Dialed {
  readonly connection: NatsConnection;
  /** Destroys its sockets, so that closing a dead connection does not hang. */
  readonly destroy: () => void;
}

export interface Dialing {
  /** Never rejects. */
  readonly result: Promise<Dialed | PublishFailed>;
  abandon(): void;
}

interface Sockets {
  readonly open: Set<Socket>;
  abandoned: boolean;
}

const current = new AsyncLocalStorage<Sockets>();
/**
 * Async hooks are on only while attempts run, because they cost every promise of the process a
 * little.
 */
let attempts = 0;

const noteSocket = (message: unknown): void => {
  const { socket } = message as { readonly socket?: unknown };
  const sockets = current.getStore();
  if (sockets === undefined || !(socket instanceof Socket)) return;
  if (sockets.abandoned) socket.destroy();
  sockets.open.add(socket);
  socket.once("close", () => sockets.open.delete(socket));
};

function beginNoting(): void {
  if (attempts === 0) subscribe("net.client.socket", noteSocket);
  attempts += 1;
}

function endNoting(): void {
  attempts -= 1;
  if (attempts > 0) return;
  unsubscribe("net.client.socket", noteSocket);
  current.disable();
}

export function dial(client: NatsModule, address: ServerAddress, settings: Settings): Dialing {
  const sockets: Sockets = { open: new Set(), abandoned: false };
  let giveUp: (failure: PublishFailed) => void = () => undefined;
  const givenUp = new Promise<PublishFailed>((resolve) => {
    giveUp = resolve;
  });

  function destroy(): void {
    sockets.abandoned = true;
    for (const socket of sockets.open) socket.destroy();
  }

  function abandon(failure: PublishFailed): void {
    giveUp(failure);
    destroy();
  }

  async function connect(): Promise<Dialed | PublishFailed> {
    beginNoting();
    try {
      const options = connectOptions(client, address, settings);
      const connection = await current.run(sockets, () => client.connect(options));
      if (sockets.abandoned) connection.close().catch(() => undefined);
      return { connection, destroy };
    } catch (error) {
      destroy();
      const { code, reason } = describeConnectError(error);
      return failed("connection", code, `${addressLabel(address)}: ${reason}`);
    } finally {
      endNoting();
    }
  }

  const timer = setTimeout(() => abandon(silent(address, settings)), settings.connectTimeoutMs);
  const result = Promise.race([connect(), givenUp]).finally(() => clearTimeout(timer));
  return { result, abandon: () => abandon(failed("connection", "CLOSED", "the connection was given up")) };
}

function silent(address: ServerAddress, { connectTimeoutMs }: Settings): PublishFailed {
  const reason = `${addressLabel(address)} accepted no NATS connection within ${connectTimeoutMs} ms`;
  return failed("connection", "CONNECT_TIMEOUT", reason);
}

/** Detects a server that vanished within 20 to 30 seconds. */
const PING_INTERVAL_MS = 10_000;
const PINGS_WITHOUT_ANSWER = 2;

function connectOptions(
  client: NatsModule,
  address: ServerAddress,
  settings: Settings,
): Parameters<NatsModule["connect"]>[0] {
  return {
    servers: [addressLabel(address)],
    name: settings.name,
    // Otherwise messages handed to the old connection could be sent by the new one.
    reconnect: false,
    noRandomize: true,
    ignoreClusterUpdates: true,
    noAsyncTraces: true,
    // Our own timer fires first.
    timeout: 2 * settings.connectTimeoutMs,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: PINGS_WITHOUT_ANSWER,
    inboxPrefix: settings.inboxPrefix,
    ...authenticatorOf(client, settings),
    ...tlsOf(address, settings),
  };
}

function authenticatorOf(client: NatsModule, { login }: Settings): { readonly authenticator?: unknown } {
  switch (login?.kind) {
    case "password":
      return { authenticator: client.usernamePasswordAuthenticator(login.user, login.password) };
    case "token":
      return { authenticator: client.tokenAuthenticator(login.secret) };
    case "nkey":
      return { authenticator: client.nkeyAuthenticator(Buffer.from(login.secret.trim())) };
    case "credentials":
      // The client parses it by lines and needs a final line break.
      return { authenticator: client.credsAuthenticator(Buffer.from(`${login.secret.trim()}\n`)) };
    case undefined:
      return {};
  }
}

function tlsOf(address: ServerAddress, { tls }: Settings): { readonly tls?: Readonly<Record<string, unknown>> } {
  if (tls === undefined) return {};
  // Node.js gets an open socket and would check a certificate for an IP address against
  // "localhost".
  const isUnnamed = tls.serverName === undefined && isIP(address.host) !== 0;
  return { tls: { ...nodeTls(tls), ...(isUnnamed && { host: address.host }) } };
}
