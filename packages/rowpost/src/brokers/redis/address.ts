import { ConfigurationError } from "../../runtime/errors.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";
import { checkedTls, type TlsOptions } from "../settings/tls-options.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: TlsOptions | undefined;
}

const FORM = "redis://[user:password@]host[:6379][/db], or rediss:// for TLS";

interface Credentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: TlsOptions | undefined;
}

/** Takes a url apart; no error repeats it, for its password. Throws {@link ConfigurationError}. */
export function addressOf(url: string | URL, { username, password, tls }: Credentials): Address {
  const text = String(url);
  if (!URL.canParse(text)) throw new ConfigurationError(`redis broker: the url cannot be read; expected ${FORM}`);
  const parsed = new URL(text);
  if ((parsed.protocol !== "redis:" && parsed.protocol !== "rediss:") || parsed.hostname === "") {
    throw new ConfigurationError(`redis broker: the url must be ${FORM}`);
  }
  if (parsed.search !== "" || parsed.hash !== "") {
    throw new ConfigurationError(
      "redis broker: settings behind ? are for redisFromUrl; here they are options of their own",
    );
  }
  const database = /^\/?(\d{0,5})\/?$/.exec(parsed.pathname)?.[1];
  if (database === undefined) {
    throw new ConfigurationError(
      "redis broker: what follows the host in the url must be a database's number, as in /0",
    );
  }
  const secure = parsed.protocol === "rediss:";
  if (tls !== undefined && !secure) throw new ConfigurationError("redis broker: the tls option needs a rediss:// url");
  return {
    host: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? 6379 : Number(parsed.port),
    db: Number(database),
    username: username ?? decoded("user", parsed.username),
    password: password ?? decoded("password", parsed.password),
    tls: checkedTls(tls ?? secure),
  };
}

function decoded(what: string, text: string): string | undefined {
  return text === "" ? undefined : percentDecoded(`redis broker: the ${what} in the url`, text);
}
