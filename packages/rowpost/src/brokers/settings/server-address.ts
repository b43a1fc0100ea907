import { ConfigurationError } from "../../runtime/errors.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

interface AddressForm {
  readonly broker: string;
  readonly schemes: readonly string[];
  readonly defaultPort: number;
}

/**
 * Of `host`, `host:port` or `scheme://host:port`; IPv6 in brackets. Throws
 * {@link ConfigurationError}.
 */
export function serverAddress(text: string, { broker, schemes, defaultPort }: AddressForm): ServerAddress {
  const scheme = `(?:(?:${schemes.join("|")})://)?`;
  const match = new RegExp(`^${scheme}(?:\\[([\\da-f:.]+)\\]|([^:[\\]/@\\s]+))(?::(\\d{1,5}))?/?$`, "i").exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? defaultPort);
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  const others = schemes.map((each, index) => `${each}://host${index === 0 ? "" : `:${defaultPort}`}`);
  throw new ConfigurationError(
    `${broker} broker: "${text}" is not an address such as 127.0.0.1:${defaultPort}, ${others.join(" or ")}`,
  );
}

export function addressLabel({ host, port }: ServerAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The sorted servers as one text, for `target`. Undefined without servers. */
export function targetOf(servers: readonly ServerAddress[], more = ""): string | undefined {
  if (servers.length === 0) return undefined;
  return `${servers.map(addressLabel).sort().join(",")}${more}`;
}
