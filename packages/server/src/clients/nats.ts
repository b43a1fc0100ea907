import { credsAuthenticator, type NodeConnectionOptions, nkeyAuthenticator } from "@nats-io/transport-node";
import type { NatsOptions, NatsTlsOptions } from "rowpost/nats";
import { tlsOf } from "./tls.ts";

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
    ...(tls === undefined || tls === false ? {} : { tls: tls === true ? {} : natsTls(tls) }),
  };
}

/** The client passes it to Node.js unchanged, although its types differ. */
function natsTls(tls: NatsTlsOptions): NonNullable<NodeConnectionOptions["tls"]> {
  return { ...tlsOf(tls) } as object;
}
