/**
 * An outage of a server that others use: the relay reaches it through a proxy, which resets every
 * connection and refuses new ones.
 */
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";
import type { BrokerUnderTest } from "./broker-under-test.ts";

/** A server behind a proxy. */
export interface CutOff extends Pick<BrokerUnderTest, "takeAway" | "bringBack" | "close"> {
  /** The server's address with the proxy's host and port. */
  readonly url: string;
}

/** Puts a proxy before the server of a URL. */
export async function cutOff(address: string, defaultPort: number): Promise<CutOff> {
  const server = new URL(address);
  const target = { host: server.hostname, port: Number(server.port || defaultPort) };
  const proxy = await createTcpProxy({ target });
  const url = new URL(address);
  url.host = `127.0.0.1:${proxy.port}`;
  return {
    url: url.href,
    async takeAway() {
      await Promise.all([proxy.refuse(), proxy.cut()]);
    },
    bringBack: () => proxy.accept(),
    close: () => proxy.close(),
  };
}
