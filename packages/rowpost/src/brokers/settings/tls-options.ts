import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";

/** What a TLS connection trusts and how it proves itself. Texts are PEM, not file names. */
export interface TlsOptions {
  /** Certificates of the authorities to trust. Default: the ones that Node.js brings along. */
  readonly ca?: string | Uint8Array | undefined;
  /** Our own certificate chain, where the server asks for one. Together with `key`. */
  readonly cert?: string | Uint8Array | undefined;
  /** Private key of `cert`. */
  readonly key?: string | Uint8Array | undefined;
  /** False: accept any certificate. Default true. */
  readonly rejectUnauthorized?: boolean | undefined;
  /** The name that the server's certificate must have, where it is not the host of the address. */
  readonly serverName?: string | undefined;
}

const KINDS: OptionKinds<TlsOptions> = {
  ca: ["string", "object"],
  cert: ["string", "object"],
  key: ["string", "object"],
  rejectUnauthorized: "boolean",
  serverName: "string",
};

/** What `tls.connect` takes. Without a name it checks the certificate against the host. */
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
