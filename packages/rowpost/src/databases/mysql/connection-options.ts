import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { namedFile } from "../../runtime/named-file.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";

/** Address and credentials, under the names that both drivers use. */
export interface ConnectionOptions {
  /** Default: localhost. */
  readonly host?: string;
  /** Default 3306. */
  readonly port?: number;
  /** User name. */
  readonly user?: string;
  /** Password of the user. */
  readonly password?: string;
  /** Database of the tables. */
  readonly database?: string;
  /** Unix socket, instead of `host` and `port`. */
  readonly socketPath?: string;
  /** TLS options of Node, or true for its defaults. */
  readonly ssl?: unknown;
  /** Milliseconds. Default: the driver's. */
  readonly connectTimeout?: number;
}

const KINDS: OptionKinds<ConnectionOptions> = {
  host: "string",
  port: "number",
  user: "string",
  password: "string",
  database: "string",
  socketPath: "string",
  ssl: ["boolean", "object", "string"],
  connectTimeout: "number",
};

/** Exactly one of these. */
export type Source = { readonly pool: unknown } | { readonly connection: ConnectionOptions };

/**
 * Throws `ConfigurationError` for both or neither, and for an unknown option, which a driver would
 * ignore.
 */
export function sourceOf(what: string, given: object, own: Readonly<Record<string, "boolean">> = {}): Source {
  const settings = `${what}: takes { pool }, { url } or connection options such as { host, port, user, password, database }`;
  if (typeof given !== "object" || given === null) throw new ConfigurationError(settings);
  const way = "pool" in given ? "pool" : "url" in given ? "url" : undefined;
  const beside = Object.keys(given).filter((name) => name !== way);
  if (way !== undefined && beside.length > 0) {
    throw new ConfigurationError(`${settings}; not ${beside.join(", ")} beside ${way}`);
  }
  if ("pool" in given) return { pool: given.pool };
  if ("url" in given) {
    checkOptions(what, given, { url: "string" });
    return { connection: parseUrl(String(given.url)) };
  }
  if (Object.keys(given).length === 0) throw new ConfigurationError(settings);
  checkOptions<object>(what, given, { ...KINDS, ...own });
  return { connection: given };
}

/** PEM files, by the names that MySQL's own programs use. */
const PEM_FILES: Readonly<Record<string, "ca" | "cert" | "key">> = {
  "ssl-ca": "ca",
  "ssl-cert": "cert",
  "ssl-key": "key",
};
const KNOWN_SETTINGS = "ssl=true, ssl=unverified, ssl=false, ssl-ca=PATH, ssl-cert=PATH, ssl-key=PATH and socket=PATH";

/**
 * Reads `mysql://user:password@host:port/database`, also with the scheme `mariadb`. `?ssl=true`
 * requires TLS with a verified certificate, `?ssl=unverified` TLS only, `?ssl-ca=/path` a
 * certificate of these authorities (`ssl-cert` and `ssl-key`: our own), `?socket=/path` a local
 * socket. Throws `ConfigurationError` for anything else, without repeating the password.
 */
export function parseUrl(url: string): ConnectionOptions {
  // Drops the parser's own error, which repeats the URL.
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
  Object.defineProperties(options, settingsOf(parsed.searchParams));
  return options;
}

function settingsOf(settings: URLSearchParams): PropertyDescriptorMap {
  const found: PropertyDescriptorMap = {};
  const files: [kind: "ca" | "cert" | "key", path: string][] = [];
  for (const [name, value] of settings) {
    const file = PEM_FILES[name];
    if (file !== undefined) files.push([file, value]);
    else if (name === "socket") found["socketPath"] = { enumerable: true, value };
    else if (name === "ssl" && value === "true") found["ssl"] = { enumerable: true, value: {} };
    else if (name === "ssl" && value === "unverified") {
      found["ssl"] = { enumerable: true, value: { rejectUnauthorized: false } };
    } else if (!(name === "ssl" && value === "false")) {
      throw new ConfigurationError(
        `the database URL has ?${name}=${name === "ssl" ? value : "…"}; known are ${KNOWN_SETTINGS}`,
      );
    }
  }
  if (files.length === 0) return found;
  if (settings.get("ssl") === "false") {
    throw new ConfigurationError("the database URL: ssl=false contradicts its other settings of TLS");
  }
  const own: unknown = found["ssl"]?.value;
  const pem = (kind: string, path: string): string =>
    namedFile(`the database URL: the ssl-${kind} file`, path).toString();
  const read = (): object => Object.assign({}, own, ...files.map(([kind, path]) => ({ [kind]: pem(kind, path) })));
  // Reports an unreadable file now.
  read();
  // Read again for each connection, so a replaced bundle takes effect without a restart.
  found["ssl"] = { enumerable: true, get: read };
  return found;
}

/** For logs and error texts, without user and password. */
export function addressLabel(address: ConnectionOptions | undefined, scheme: "mysql" | "mariadb"): string {
  if (address === undefined) return `${scheme}://(pool)`;
  const where = address.socketPath ?? `${address.host ?? "localhost"}:${address.port ?? 3306}`;
  return `${scheme}://${where}/${address.database ?? ""}`;
}
