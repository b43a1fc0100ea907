/** A database on a server, and the way to it, which a test may cut. */
import type { TcpProxy } from "../../src/testing/index.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";

export interface Proxied {
  readonly made: Awaited<ReturnType<typeof createTestDatabase>>;
  readonly proxy: TcpProxy;
  /** Of the same database, through the proxy. */
  readonly farUrl: string;
}

export async function proxiedDatabase(name: DatabaseServiceName): Promise<Proxied> {
  const made = await createTestDatabase(name);
  const url = new URL(made.url);
  const proxy = await createTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
  url.hostname = proxy.host;
  url.port = String(proxy.port);
  return { made, proxy, farUrl: url.href };
}
