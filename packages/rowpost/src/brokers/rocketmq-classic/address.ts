/** Addresses of name servers (from the options) and of brokers (from the name servers). */
import { isIPv6 } from "node:net";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressList } from "../settings/address-list.ts";
import type { ServerAddress } from "../settings/server-address.ts";

const NAME_SERVER_PORT = 9876;

/** From a list or a text with semicolons or commas. Throws {@link ConfigurationError}. */
export function nameServersFrom(nameServers: string | readonly string[]): ServerAddress[] {
  const used = addressList(nameServers, {
    account: "nameServers: no keys in nameServers; accessKey and secretKey are options of their own",
    empty: 'nameServers is empty; give the addresses of the name servers, such as "127.0.0.1:9876"',
    separator: /[,;]/,
  });
  return used.map((text) => {
    const address = addressFrom(text, NAME_SERVER_PORT);
    if (address !== undefined) return address;
    throw new ConfigurationError(`nameServers: "${text}" is not host:port, such as 127.0.0.1:9876 or [::1]:9876`);
  });
}

/** `host:port`; undefined for anything else. Java writes IPv6 addresses without brackets. */
export function addressFrom(text: string, defaultPort?: number): ServerAddress | undefined {
  const bare = /^([\da-f:]+):(\d{1,5})$/i.exec(text);
  const match = /^(?:\[([^\]]+)\]|([^:[\]/@\s]+))(?::(\d{1,5}))?$/.exec(text);
  const isBareIpv6 = match === null && bare?.[1] !== undefined && isIPv6(bare[1]);
  const host = isBareIpv6 ? bare[1] : (match?.[1] ?? match?.[2]);
  const port = Number((isBareIpv6 ? bare[2] : match?.[3]) ?? defaultPort);
  if (host === undefined || !(port >= 1 && port <= 65_535)) return undefined;
  return match?.[1] !== undefined && !isIPv6(host) ? undefined : { host, port };
}
