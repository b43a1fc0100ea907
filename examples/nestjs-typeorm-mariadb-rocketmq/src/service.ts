/** The service as it would be deployed. */
import "reflect-metadata";
import type { AddressInfo } from "node:net";
import { NestFactory } from "@nestjs/core";
import { AppModule } from "./app.module";

async function bootstrap(): Promise<void> {
  const app = await NestFactory.create(AppModule, { forceCloseConnections: true, logger: ["error", "warn"] });
  app.enableShutdownHooks(); // SIGTERM stops the relay, then closes everything
  await app.listen(Number(process.env.PORT ?? 0), "127.0.0.1");
  const { port } = app.getHttpServer().address() as AddressInfo;
  console.log(`the shop listens on http://127.0.0.1:${port}/orders`);
  process.send?.({ port });
}

void bootstrap();
