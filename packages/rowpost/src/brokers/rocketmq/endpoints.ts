import { isIPv4, isIPv6 } from "node:net";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressList } from "../settings/address-list.ts";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly scheme: "IPv4" | "IPv6" | "DOMAIN_NAME";
}

const DEFAULT_PORT = 8081;

/** From a list or a text with commas or semicolons. Throws {@link ConfigurationError}. */
export function endpointsFrom(endpoints: string | readonly string[]): Endpoint[] {
  const used = addressList(endpoints, {
    account: "endpoints: no keys in endpoints; accessKey and secretKey are options of their own",
    empty: 'endpoints is empty; give the proxy\'s gRPC address, such as "127.0.0.1:8081"',
    separator: /[,;]/,
  });
  return used.map(endpointFrom);
}

function endpointFrom(text: string): Endpoint {
  const match = /^(?:\[([^\]]+)\]|([^:[\]/@\s]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? DEFAULT_PORT);
  const bracketed = match?.[1] !== undefined;
  if (host === undefined || port < 1 || port > 65_535 || (bracketed && !isIPv6(host))) {
    throw new ConfigurationError(`endpoints: "${text}" is not host:port, such as 127.0.0.1:8081 or [::1]:8081`);
  }
  return { host, port, scheme: bracketed ? "IPv6" : isIPv4(host) ? "IPv4" : "DOMAIN_NAME" };
}
