/**
 * A shop in a process of its own: NestJS over HTTP, orders written with TypeORM, the relay inside,
 * and with `nats` a consumer, whose messages give points in a TypeORM transaction. Decorators are
 * called as functions, because this file is run as it is. Its broker is a ledger file: a message is
 * "on the broker" when its line is in the file.
 *
 * Arguments as JSON in argv[2]: { service, url, ledger, nats: { servers, stream } }. Tells its
 * parent the port once it serves.
 */
import "reflect-metadata";
import { appendFileSync } from "node:fs";
import { Body, Controller, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { consumeNats } from "rowpost/consume";
import { OnMessage, Outbox, RowpostModule } from "rowpost-nestjs";
import { DataSource } from "typeorm";

const { service, url, ledger, nats } = JSON.parse(process.argv[2] ?? "{}");
const { mysql, postgres } = await import(service === "postgres" ? "rowpost/postgres" : "rowpost/mysql");
let receipts = 0;

async function publish(batch) {
  // As long as a broker on another host takes, so that a stop finds messages on their way.
  await new Promise((resolve) => setTimeout(resolve, 5));
  appendFileSync(ledger, batch.map(({ key }) => `${key}\n`).join(""));
  return batch.map(() => ({ status: "sent", messageId: `${process.pid}-${++receipts}` }));
}

const broker = {
  name: "ledger",
  features: { ordering: "key", delay: false, reportsUnknownTopic: false, maxBodyBytes: undefined },
  publish,
  check: async () => {},
  close: async () => {},
};

/** Closes the pool where `@nestjs/typeorm` does. */
class Shutdown {
  constructor(dataSource) {
    this.dataSource = dataSource;
  }
  async onApplicationShutdown() {
    await this.dataSource.destroy();
  }
}

class OrdersController {
  constructor(dataSource, outbox) {
    this.dataSource = dataSource;
    this.outbox = outbox;
  }
  async create({ id }) {
    await this.dataSource.transaction(async (manager) => {
      await manager.query(`INSERT INTO orders (id) VALUES (${service === "postgres" ? "$1" : "?"})`, [id]);
      await this.outbox.enqueue(manager, { type: "order.created", key: id, topic: "orders", body: { id } });
    });
    this.outbox.wake();
    return { id };
  }
}
class Points {
  async give({ key }, { tx }) {
    // So long that a stop finds some that run.
    await tx.query("SELECT SLEEP(0.01)");
    await tx.query("INSERT INTO points (id) VALUES (?)", [key]);
  }
}
decorate(OnMessage("order.paid"), Points.prototype, "give");
decorate(Post(), OrdersController.prototype, "create");
Body()(OrdersController.prototype, "create", 0);
Controller("orders")(OrdersController);
Reflect.defineMetadata("design:paramtypes", [DataSource, Outbox], OrdersController);
Reflect.defineMetadata("design:paramtypes", [DataSource], Shutdown);

function decorate(decorator, target, name) {
  decorator(target, name, Object.getOwnPropertyDescriptor(target, name));
}

const { hostname, pathname, port, username } = new URL(url);
const type = service === "postgres" ? "postgres" : "mysql";
const address = { host: hostname, port: Number(port), username, database: pathname.slice(1) };

class DataModule {}
Module({
  providers: [
    { provide: DataSource, useFactory: () => new DataSource({ type, ...address, poolSize: 8 }).initialize() },
    Shutdown,
  ],
  exports: [DataSource],
})(DataModule);

async function consume(dataSource, parts) {
  const { connect } = await import("@nats-io/transport-node");
  return await consumeNats({
    ...parts,
    connect: () => connect({ servers: nats.servers }),
    stream: nats.stream,
    durable: "points",
    concurrency: 2,
    transaction: (work) => dataSource.transaction(work),
  });
}

class AppModule {}
Module({
  imports: [
    DataModule,
    RowpostModule.forRootAsync({
      imports: [DataModule],
      inject: [DataSource],
      useFactory: (dataSource) => ({
        database: (mysql ?? postgres)({ url: url.replace(/^mariadb:/, "mysql:") }),
        relay: { broker, batchSize: 20, heartbeatMs: 200 },
        consumers: { points: nats !== undefined && ((parts) => consume(dataSource, parts)) },
      }),
    }),
  ],
  controllers: [OrdersController],
  providers: [Points],
})(AppModule);

const app = await NestFactory.create(AppModule, { forceCloseConnections: true, logger: false });
app.enableShutdownHooks();
await app.listen(0, "127.0.0.1");
process.send?.({ port: app.getHttpServer().address().port });
