import { ConfigurationError } from "../../runtime/errors.ts";

/**
 * What a TLS connection trusts and how it proves itself: the same options for every broker. Texts
 * are PEM, not file names.
 */
export interface TlsOptions {
  /** Certificates of the authorities to trust. Default: the ones that Node.js brings along. */
  readonly ca?: string | Uint8Array | undefined;
  /** Our own certificate chain, where the server asks for one. Together with `key`. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** False: accept any certificate. Default true. */
  readonly rejectUnauthorized?: boolean | undefined;
  /** The name that the server's certificate must have, where it is not the host of the address. */
  readonly serverName?: string | undefined;
}

/**
 * The options of an adapter whose `tls` is a switch or the options themselves: an empty object for
 * `true`, undefined for plaintext. Throws {@link ConfigurationError} for half a pair.
 */
export function checkedTls(tls: boolean | TlsOptions | undefined): TlsOptions | undefined {
  if (typeof tls !== "object") return tls === true ? {} : undefined;
  if ((tls.cert === undefined) === (tls.key === undefined)) return tls;
  throw new ConfigurationError("tls.cert and tls.key belong together: give both or none");
}
