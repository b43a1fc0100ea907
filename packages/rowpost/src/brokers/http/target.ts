import { ConfigurationError } from "../../runtime/errors.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";

export interface Target {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly authorization: Readonly<Record<string, string>>;
  /** Scheme, host and path for texts, without credentials and query, which may hold secrets. */
  readonly label: string;
}

/** Throws `ConfigurationError` unless it is an http or https url. */
export function targetOf(url: string | URL): Target {
  const parsed = parse(url);
  const secure = parsed.protocol === "https:";
  const { username, password } = parsed;
  const credentials = `${percentDecoded("http broker: the user in the url", username)}:${percentDecoded("http broker: the password in the url", password)}`;
  return {
    secure,
    // Removes the brackets of an IPv6 address.
    hostname: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? (secure ? 443 : 80) : Number(parsed.port),
    path: `${parsed.pathname}${parsed.search}`,
    authorization: username === "" ? {} : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` },
    label: `${parsed.protocol}//${parsed.host}${parsed.pathname}`,
  };
}

function parse(url: string | URL): URL {
  const text = String(url);
  if (!URL.canParse(text))
    throw new ConfigurationError("http broker: the url cannot be read; write http://host:port/path");
  const parsed = new URL(text);
  if (parsed.protocol === "http:" || parsed.protocol === "https:") return parsed;
  throw new ConfigurationError(`http broker: the url must begin with http:// or https://, not ${parsed.protocol}`);
}
