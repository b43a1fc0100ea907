/**
 * @fullstackhouse/nestjs-outbox with its TypeORM driver: 200 events a poll, polls of 50 ms, pool of
 * 10, no middleware.
 */
import { createRequire } from "node:module";
import { bodyOf, countQueries, runPeer } from "../protocol.mjs";

const load = createRequire(import.meta.url);
load("reflect-metadata");
const { NestFactory } = load("@nestjs/core");
const { Module } = load("@nestjs/common");
const { OutboxModule, TransactionalEventEmitter } = load("@fullstackhouse/nestjs-outbox");
const { TypeORMDatabaseDriverFactory, TypeOrmOutboxTransportEvent } = load(
  "@fullstackhouse/nestjs-outbox-typeorm-driver",
);
const { DataSource } = load("typeorm");

const [url, messages] = process.argv.slice(2);
const EVENT = "OrderCreated";
const DAY_MS = 86_400_000;
const postgres = url.startsWith("postgres");
const statements = postgres ? countQueries(load("pg")) : undefined;
const shared = { url, entities: [TypeOrmOutboxTransportEvent], logging: false };
const source = new DataSource(
  postgres
    ? { ...shared, type: "postgres", extra: { max: 10 } }
    : { ...shared, url: url.replace(/^mariadb:/, "mysql:"), type: "mysql", connectorPackage: "mysql2", poolSize: 10 },
);
const silent = Object.fromEntries(["log", "warn", "debug", "verbose", "fatal"].map((level) => [level, () => {}]));
const logger = { ...silent, error: (...parts) => console.error(...parts) };
let application;

class BenchModule {}
Module({
  imports: [
    OutboxModule.registerAsync({
      isGlobal: true,
      useFactory: () => ({
        driverFactory: new TypeORMDatabaseDriverFactory(source),
        enableDefaultMiddlewares: false,
        pollingInterval: 50,
        maxEventsPerPoll: 200,
        events: [{ name: EVENT, listeners: { retentionPeriod: DAY_MS, maxExecutionTime: 15_000, maxRetries: 5 } }],
      }),
    }),
  ],
})(BenchModule);

await runPeer(
  {
    statements,
    async prepare() {
      await source.initialize();
      await source.synchronize();
    },
    async fill(count) {
      const repository = source.getRepository(TypeOrmOutboxTransportEvent);
      const insertedAt = Date.now() - 1000;
      for (let first = 0; first < count; first += 500) {
        await repository.insert(
          Array.from({ length: Math.min(500, count - first) }, (_, offset) => {
            const payload = { name: EVENT, ...bodyOf(first + offset) };
            return new TypeOrmOutboxTransportEvent().create(EVENT, payload, insertedAt + DAY_MS, insertedAt);
          }),
        );
      }
      await source.query(postgres ? "VACUUM ANALYZE outbox_transport_event" : "ANALYZE TABLE outbox_transport_event");
    },
    async start(onPublish) {
      application = await NestFactory.createApplicationContext(BenchModule, { logger });
      const listener = { getName: () => "publisher", handle: async () => onPublish() };
      application.get(TransactionalEventEmitter).addListener(EVENT, listener);
    },
    stop: () => application.close(),
    async waiting() {
      const [row] = await source.query("SELECT COUNT(*) AS waiting FROM outbox_transport_event");
      return Number(row.waiting);
    },
    close: () => source.destroy(),
  },
  Number(messages),
);
