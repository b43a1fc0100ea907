import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";

/** Trust and client certificate of a TLS connection. Texts are PEM, not file names. */
export interface TlsOptions {
  /** Certificates of trusted authorities. Default: those of Node.js. */
  readonly ca?: string | Uint8Array | undefined;
  /** Client certificate chain, if the server asks for one. Requires `key`. */
  readonly cert?: string | Uint8Array | undefined;
  /** Private key of `cert`. */
  readonly key?: string | Uint8Array | undefined;
  /** False: accept any certificate. Default true. */
  readonly rejectUnauthorized?: boolean | undefined;
  /** Name that the server's certificate must have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}

const KINDS: OptionKinds<TlsOptions> = {
  ca: ["string", "object"],
  cert: ["string", "object"],
  key: ["string", "object"],
  rejectUnauthorized: "boolean",
  serverName: "string",
};

/** Options of `tls.connect`. Without a name it checks the certificate against the host. */
export function nodeTls({ ca, cert, key, rejectUnauthorized = true, serverName }: TlsOptions): NodeTls {
  const given = Object.entries({ ca: pem(ca), cert: pem(cert), key: pem(key), servername: serverName });
  return { rejectUnauthorized, ...Object.fromEntries(given.filter(([, text]) => text !== undefined)) };
}

export interface NodeTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly rejectUnauthorized: boolean;
  readonly servername?: string;
}

function pem(text: string | Uint8Array | undefined): string | Buffer | undefined {
  return text instanceof Uint8Array ? Buffer.from(text) : text;
}

/** Empty for `true`, undefined for plaintext. Throws {@link ConfigurationError} for half a pair. */
export function checkedTls(tls: boolean | TlsOptions | undefined): TlsOptions | undefined {
  if (typeof tls !== "object") return tls === true ? {} : undefined;
  checkOptions("tls", tls, KINDS);
  if ((tls.cert === undefined) === (tls.key === undefined)) return tls;
  throw new ConfigurationError("tls.cert and tls.key belong together: give both or none");
}
