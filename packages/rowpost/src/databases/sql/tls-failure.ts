/**
 * TLS failures that waiting does not fix: an untrusted certificate, a server without TLS or one
 * that requires it, an unreadable file. Recognized by Node.js codes or the driver's words.
 */
import { ConfigurationError, describeError } from "../../runtime/errors.ts";

/** OpenSSL's names for certificate problems, and Node.js' own for the host name. */
const UNTRUSTED =
  /^(UNABLE_TO_(GET|VERIFY|DECODE|DECRYPT)|CERT_|SELF_SIGNED|DEPTH_ZERO|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH|ERR_TLS_CERT)/;
const NO_TLS = new Set(["HANDSHAKE_NO_SSL_SUPPORT", "ER_SERVER_SSL_DISABLED"]);

export interface TlsAdvice {
  /** Setting with the file of the authorities, such as `ssl-ca=PATH`. */
  readonly trust: string;
}

/** Our error that names the setting; undefined for other errors. */
export function tlsFailure(error: unknown, what: string, { trust }: TlsAdvice): ConfigurationError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall } = error as { readonly code?: unknown; readonly syscall?: unknown };
  const said = describeError(error);
  if (UNTRUSTED.test(String(code)) || (code === "HANDSHAKE_SSL_ERROR" && /certificate/i.test(error.message))) {
    return new ConfigurationError(
      `${what}: the certificate of the server is not trusted (${said}): give the file with its authority, as ?${trust} in the database URL or ssl: { ca } in options; the host of the URL has to be in the certificate, and today in its dates`,
      { cause: error },
    );
  }
  if (NO_TLS.has(String(code)) || error.message === "The server does not support SSL connections") {
    return new ConfigurationError(
      `${what}: the server has no TLS (${said}): turn it on there, or leave it out of the database URL`,
      { cause: error },
    );
  }
  if (code === "ER_SECURE_TRANSPORT_REQUIRED") {
    return new ConfigurationError(
      `${what}: the server takes connections with TLS alone (${said}): give the file with its authority, as ?${trust} in the database URL or ssl: { ca } in options`,
      { cause: error },
    );
  }
  if (syscall !== "open") return undefined;
  return new ConfigurationError(`${what}: a file of the database URL cannot be read (${said})`, { cause: error });
}
