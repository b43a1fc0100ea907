import { createServer } from "node:net";

/**
 * A port that nothing listens on now, on any address of this host. Somebody may take it before the
 * server does; then the server's start fails and says so.
 */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once("error", reject).listen(0, "0.0.0.0", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
