/** Connections of the NATS client by the options of a broker's URL. */
import { credsAuthenticator, type NodeConnectionOptions, nkeyAuthenticator } from "@nats-io/transport-node";
import type { NatsOptions } from "rowpost/nats";

/** `name`: as the server lists the connection. */
export function natsConnectOptions(settings: NatsOptions, name: string): NodeConnectionOptions {
  const { servers = [], user, password, token, nkeySeed, credentials, tls } = settings;
  const bytes = (text: string): Uint8Array => Buffer.from(text);
  return {
    servers: [servers].flat().flatMap((text) => text.split(",")),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 200,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(nkeySeed === undefined ? {} : { authenticator: nkeyAuthenticator(bytes(nkeySeed)) }),
    ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(bytes(credentials)) }),
    ...(tls === undefined || tls === false ? {} : { tls: tlsOf(tls) }),
  };
}

function tlsOf(tls: Exclude<NatsOptions["tls"], false | undefined>): NonNullable<NodeConnectionOptions["tls"]> {
  if (tls === true) return {};
  const { serverName, ...others } = tls;
  const given = Object.entries({ ...others, servername: serverName }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}
