/**
 * The transactions of the ORMs that Nest applications use, in an application: a message commits and
 * rolls back with them, and the application's relay publishes it.
 */
import "reflect-metadata";
import type { INestApplicationContext } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type MemoryBroker, memory } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRelayDatabase, type RelayTestDatabase } from "../../rowpost/test/relay/bench-database.ts";
import { describeWithService } from "../../rowpost/test/services.ts";
import { type Connect, type Handles, targetOf } from "../../rowpost/test/transactions/handles.ts";
import { drizzle, mikroOrm, prisma, typeormManager } from "../../rowpost/test/transactions/orm-handles.ts";
import { Outbox, RowpostModule } from "../src/index.ts";

const ORMS: readonly (readonly [string, Connect])[] = [
  ["TypeORM", typeormManager],
  ["Prisma", prisma],
  ["Drizzle", drizzle],
  ["MikroORM", mikroOrm],
];

describeWithService(["mariadb", "postgres"], "a Nest application", (service) => {
  let tables: RelayTestDatabase;
  let app: INestApplicationContext;
  let outbox: Outbox;
  let broker: MemoryBroker;

  beforeAll(async () => {
    tables = await createRelayDatabase(service.name);
    await tables.sql("CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY)");
    broker = memory();
    const url = tables.url.replace(/^mariadb:/, "mysql:");
    const module = RowpostModule.forRoot({
      database: service.name === "postgres" ? postgres({ url }) : mysql({ url }),
      relay: { broker },
    });
    app = await NestFactory.createApplicationContext(module, { logger: ["error"] });
    outbox = app.get(Outbox);
  });
  afterAll(async () => {
    await app.close();
    await tables.drop();
  });

  describe.each(ORMS)("with %s", (name, connect) => {
    let orm: Handles;
    beforeAll(async () => {
      orm = await connect(targetOf(tables.url, () => {}));
    });
    afterAll(async () => {
      await orm.close();
    });

    test("publishes what was committed, and nothing else", async () => {
      const place = async (id: string, fault?: Error): Promise<void> => {
        await orm.transaction(async (tx, insertOrder) => {
          await insertOrder(id);
          await outbox.enqueue(tx, { type: name, key: id, topic: "orders", body: { id } });
          if (fault !== undefined) throw fault;
        });
      };
      const before = broker.published().length;
      await expect(place(`${name}-0`, new Error("no stock"))).rejects.toThrow("no stock");
      await place(`${name}-1`);
      outbox.wake();
      await broker.waitFor(before + 1);
      const rows = await tables.sql(`SELECT id FROM orders WHERE id LIKE '${name}-%'`);
      expect(rows.map((row) => row["id"])).toEqual([`${name}-1`]);
      expect(
        broker
          .published()
          .slice(before)
          .map(({ key }) => key),
      ).toEqual([`${name}-1`]);
    });
  });
});
