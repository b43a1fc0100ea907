import { InvalidArgumentError } from "commander";

export interface HttpAddress {
  readonly host: string;
  readonly port: number;
}

/** Parses `9464`, `0.0.0.0:9464`, `[::1]:9464`. Without a host it listens to this machine only. */
export function httpAddress(text: string): HttpAddress {
  const [, host, port] = /^(?:(\[[0-9a-f:.]+\]|[\w.-]+):)?(\d{1,5})$/i.exec(text.trim()) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new InvalidArgumentError("It must be PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464.");
  }
  return { host: host?.replace(/^\[|\]$/g, "") ?? "127.0.0.1", port: Number(port) };
}
