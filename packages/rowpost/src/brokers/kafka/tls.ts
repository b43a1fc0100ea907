/** Options of Node's TLS sockets out of ours. */

import { isIP } from "node:net";
import type { TlsOptions } from "../settings/tls-options.ts";

/** What `tls.connect` takes. */
export interface TlsSocketOptions {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** For a connection to `host`. */
export function tlsSocketOptions(tls: TlsOptions, host: string | undefined): TlsSocketOptions {
  const servername = tls.serverName ?? (host === undefined || isIP(host) !== 0 ? undefined : host);
  return {
    ...(tls.ca === undefined ? {} : { ca: pem(tls.ca) }),
    ...(tls.cert === undefined ? {} : { cert: pem(tls.cert) }),
    ...(tls.key === undefined ? {} : { key: pem(tls.key) }),
    ...(tls.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: tls.rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
  };
}

function pem(text: string | Uint8Array): string | Buffer {
  return typeof text === "string" ? text : Buffer.from(text);
}
