/** Where a server is: options of one's own, or a URL. */
import { ConfigurationError } from "../../runtime/errors.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";

/** An address and credentials; names as both drivers have them. */
export interface ConnectionOptions {
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly socketPath?: string;
  /** TLS options of Node, or true for its defaults. */
  readonly ssl?: unknown;
  /** Milliseconds. Default: the driver's. */
  readonly connectTimeout?: number;
}

/**
 * Reads `mysql://user:password@host:port/database`, also with the scheme `mariadb`. `?ssl=true`
 * asks for TLS with a verified certificate, `?ssl=unverified` for TLS only, `?socket=/path` for a
 * local socket. Throws `ConfigurationError` for anything else, without repeating the password.
 */
export function parseUrl(url: string): ConnectionOptions {
  // Without the parser's own error, which repeats the URL.
  if (!URL.canParse(url))
    throw new ConfigurationError("the database URL cannot be read: mysql://user:password@host:port/database");
  const parsed = new URL(url);
  if (parsed.protocol !== "mysql:" && parsed.protocol !== "mariadb:") {
    throw new ConfigurationError(
      `the database URL begins with ${parsed.protocol}//; here it has to be mysql:// or mariadb://`,
    );
  }
  const options: Record<string, unknown> = {
    host: parsed.hostname === "" ? "127.0.0.1" : parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? 3306 : Number(parsed.port),
  };
  if (parsed.username !== "") options["user"] = percentDecoded("the database URL: the user", parsed.username);
  if (parsed.password !== "") options["password"] = percentDecoded("the database URL: the password", parsed.password);
  const database = percentDecoded("the database URL: the database", parsed.pathname.slice(1));
  if (database !== "") options["database"] = database;
  for (const [name, value] of parsed.searchParams) {
    if (name === "socket") options["socketPath"] = value;
    else if (name === "ssl" && value === "true") options["ssl"] = {};
    else if (name === "ssl" && value === "unverified") options["ssl"] = { rejectUnauthorized: false };
    else if (!(name === "ssl" && value === "false")) {
      throw new ConfigurationError(
        `the database URL has ?${name}=${name === "ssl" ? value : "…"}; known are ssl=true, ssl=unverified, ssl=false and socket=PATH`,
      );
    }
  }
  return options;
}

/** For logs and error texts: no user, no password. */
export function addressLabel(address: ConnectionOptions | undefined): string {
  if (address === undefined) return "mysql://(pool)";
  const where = address.socketPath ?? `${address.host ?? "localhost"}:${address.port ?? 3306}`;
  return `mysql://${where}/${address.database ?? ""}`;
}
