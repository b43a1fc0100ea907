/** The service as it would be deployed. */
import { createApp } from "./app.ts";

const app = createApp();
process.once("SIGTERM", () => void app.close());
const address = await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 0) });
console.log(`the shop listens on ${address}/orders`);
process.send?.({ address });
