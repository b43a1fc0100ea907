/** The service as it would be deployed. */
import type { AddressInfo } from "node:net";
import { startApp, stopApp } from "./app.ts";

const app = await startApp(() => !server.listening);
const server = app.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(`the shop listens on http://127.0.0.1:${port}/orders`);
  process.send?.({ port });
});

async function shutdown(): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections();
  });
  await stopApp();
}
process.once("SIGTERM", () => void shutdown());
