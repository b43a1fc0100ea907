/** The module in an application: what can be injected, how it starts and ends, what it tells. */
import "reflect-metadata";
import { Controller, Get, type INestApplication, type LoggerService, Module, type Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { HealthCheckService, TerminusModule } from "@nestjs/terminus";
import { type Database, type MemoryBroker, memory } from "rowpost";
import { mysql } from "rowpost/mysql";
import { createTcpProxy, type TcpProxy } from "rowpost/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createRelayDatabase, type RelayTestDatabase } from "../../rowpost/test/relay/bench-database.ts";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import {
  getHealthToken,
  getOutboxToken,
  getRelayToken,
  Outbox,
  Relay,
  RowpostHealthIndicator,
  RowpostModule,
} from "../src/index.ts";

const away = { status: "failed", scope: "connection", code: "AWAY", reason: "nobody there", retriable: true } as const;

/** Keeps its lines. */
function createLog(): LoggerService & { readonly lines: string[] } {
  const lines: string[] = [];
  const write = (level: string) => (text: unknown) => {
    lines.push(`${level}: ${String(text)}`);
  };
  return { lines, log: write("log"), warn: write("warn"), error: write("error"), debug: () => {} };
}

describeWithService("mariadb", "RowpostModule", (service) => {
  let tables: RelayTestDatabase;
  let app: INestApplication | undefined;
  const open = (url = tables.url): Database => mysql({ url: url.replace(/^mariadb:/, "mysql:") });

  beforeAll(async () => {
    tables = await createRelayDatabase(service.name);
  });
  afterAll(() => tables.drop());
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  async function create(module: Type, logger: LoggerService | false = false): Promise<INestApplication> {
    app = await NestFactory.create(module, { logger, abortOnError: false });
    return app;
  }

  /** A module class with these imports. */
  function moduleOf(...imports: NonNullable<Parameters<typeof Module>[0]["imports"]>): Type {
    class AppModule {}
    Module({ imports })(AppModule);
    return AppModule;
  }

  test("injects the outbox and the relay by type, in modules that do not import it", async () => {
    class Orders {
      readonly outbox: Outbox;
      readonly relay: Relay;
      constructor(outbox: Outbox, relay: Relay) {
        this.outbox = outbox;
        this.relay = relay;
      }
    }
    Reflect.defineMetadata("design:paramtypes", [Outbox, Relay], Orders);
    class OrdersModule {}
    Module({ providers: [Orders] })(OrdersModule);
    const broker = memory();
    const rowpost = RowpostModule.forRoot({ database: open(), relay: { broker } });

    const { outbox, relay } = (await (await create(moduleOf(rowpost, OrdersModule))).init()).get(Orders);
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "injected", key: "1", topic: "orders", body: {} }));
    await broker.waitFor(1);
    await vi.waitUntil(() => relay.counts.sent === 1, { timeout: 30_000 });
  });

  test("takes options from a factory, several of them by name, and a process without a relay", async () => {
    const URL_OF = Symbol("url");
    class ConfigModule {}
    Module({ providers: [{ provide: URL_OF, useFactory: () => tables.url }], exports: [URL_OF] })(ConfigModule);
    const byName = (name: string) =>
      RowpostModule.forRootAsync({
        name,
        imports: [ConfigModule],
        inject: [URL_OF],
        useFactory: async (url: string) => ({ database: open(url), createdBy: name }),
      });
    const made = await (await create(moduleOf(byName("shop"), byName("bank")))).init();

    for (const name of ["shop", "bank"]) {
      const outbox = made.get<Outbox>(getOutboxToken(name));
      await outbox.transaction((tx) => outbox.enqueue(tx, { type: "named", key: name, topic: "t", body: {} }));
      expect(made.get(getRelayToken(name))).toBeUndefined();
      const health = made.get<RowpostHealthIndicator>(getHealthToken(name));
      expect(await health.isHealthy()).toEqual({ rowpost: { status: "up", relay: "none" } });
    }
    const rows = await tables.sql("SELECT message_key, created_by FROM local_message WHERE message_type = 'named'");
    expect(new Map(rows.map((row) => [row["message_key"], row["created_by"]]))).toEqual(
      new Map([
        ["shop", "shop"],
        ["bank", "bank"],
      ]),
    );
  });

  test("does not start an application whose table is missing, and leaves nothing open", async () => {
    const empty = await createTestDatabase(service.name);
    const database = open(empty.url);
    const broker = memory();
    const closed = [vi.spyOn(database, "close"), vi.spyOn(broker, "close")];
    const made = await create(moduleOf(RowpostModule.forRoot({ database, relay: { broker } })));
    await expect(made.init()).rejects.toMatchObject({ code: "SCHEMA" });
    expect(closed.map((spy) => spy.mock.calls.length)).toEqual([1, 1]);
    app = undefined;
    await empty.drop();
  });

  test("refuses relay options that cannot work when the application is created", async () => {
    const module = moduleOf(RowpostModule.forRoot({ database: open(), relay: { broker: memory(), leaseMs: 1 } }));
    await expect(create(module)).rejects.toMatchObject({ code: "CONFIGURATION" });
  });

  test("writes to Nest's logger, and says when a signal would end the process without it", async () => {
    const log = createLog();
    const signals = process.listeners("SIGTERM");
    process.removeAllListeners("SIGTERM");
    try {
      const module = moduleOf(RowpostModule.forRoot({ database: open(), relay: { broker: memory() } }));
      await (await create(module, log)).init();
      expect(log.lines).toContainEqual(expect.stringMatching(/^warn: .*app\.enableShutdownHooks\(\)/));
      await app?.close();
      expect(log.lines).toContainEqual(expect.stringMatching(/^log: relay runs database="/));
      expect(log.lines).toContainEqual(expect.stringMatching(/^log: relay stopped sent=\d/));
    } finally {
      for (const listener of signals) process.on("SIGTERM", listener);
    }
  });

  test("says nothing of signals where shutdown hooks are on", async () => {
    const log = createLog();
    await create(moduleOf(RowpostModule.forRoot({ database: open(), relay: { broker: memory() } })), log);
    await app?.enableShutdownHooks().init();
    expect(log.lines.filter((line) => line.startsWith("warn"))).toEqual([]);
  });

  describe("health", () => {
    let proxy: TcpProxy;
    let broker: MemoryBroker;
    let isAway: boolean;

    async function start(): Promise<string> {
      const url = new URL(tables.url);
      proxy = await createTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
      url.host = `127.0.0.1:${proxy.port}`;
      isAway = false;
      broker = memory({ outcome: () => (isAway ? away : undefined) });
      class HealthController {
        readonly #terminus: HealthCheckService;
        readonly #rowpost: RowpostHealthIndicator;
        constructor(terminus: HealthCheckService, rowpost: RowpostHealthIndicator) {
          this.#terminus = terminus;
          this.#rowpost = rowpost;
        }
        check() {
          return this.#terminus.check([() => this.#rowpost.isHealthy()]);
        }
      }
      Reflect.defineMetadata("design:paramtypes", [HealthCheckService, RowpostHealthIndicator], HealthController);
      const check = Object.getOwnPropertyDescriptor(HealthController.prototype, "check");
      Get()(HealthController.prototype, "check", check as PropertyDescriptor);
      Controller("health")(HealthController);
      class AppModule {}
      const rowpost = RowpostModule.forRoot({ database: open(url.href), relay: { broker, heartbeatMs: 100 } });
      Module({ imports: [TerminusModule, rowpost], controllers: [HealthController] })(AppModule);
      await create(AppModule);
      await app?.listen(0, "127.0.0.1");
      return `${await app?.getUrl()}/health`;
    }

    afterEach(async () => {
      await proxy.accept();
      await app?.close();
      app = undefined;
      await proxy.close();
    });

    const ask = async (url: string) => {
      const response = await fetch(url);
      const { details } = (await response.json()) as { readonly details: { readonly rowpost: object } };
      return { code: response.status, ...details.rowpost };
    };
    const soon = { timeout: 30_000, interval: 20 };

    test("is up while the broker is away, and tells it", async () => {
      const url = await start();
      expect(await ask(url)).toEqual({ code: 200, status: "up", relay: "running" });
      isAway = true;
      const outbox = app?.get<Outbox>(Outbox);
      await outbox?.transaction((tx) => outbox.enqueue(tx, { type: "away", key: "1", topic: "orders", body: {} }));
      const told = {
        code: 200,
        status: "up",
        relay: "running",
        brokersAway: { memory: expect.stringContaining("nobody there") },
      };
      await expect.poll(() => ask(url), soon).toEqual(told);
      isAway = false;
      await expect.poll(() => ask(url), soon).toEqual({ code: 200, status: "up", relay: "running" });
    });

    test("is down while the database is away, and up again after", async () => {
      const url = await start();
      await proxy.refuse();
      await proxy.cut();
      const down = { code: 503, status: "down", relay: "running", database: expect.any(String) };
      await expect.poll(() => ask(url), soon).toEqual(down);
      await proxy.accept();
      await expect.poll(() => ask(url), soon).toEqual({ code: 200, status: "up", relay: "running" });
    });
  });
});
