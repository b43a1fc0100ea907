/** What runs in sessions of the user's, with sql_safe_updates on, as --safe-updates sets it. */
import { createPool } from "mysql2";
import { afterEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createQueue } from "../../src/queue/index.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";
import { until } from "../until.ts";

describeWithService(["mariadb", "mysql9"], "with sql_safe_updates", ({ name }) => {
  let table: RelayTestDatabase;
  let close: () => Promise<void>;
  afterEach(() => close());

  async function open(): Promise<Database> {
    table = await createRelayDatabase(name);
    const pool = createPool({ uri: table.url });
    pool.on("connection", (connection) => connection.query("SET SESSION sql_safe_updates = 1"));
    close = async () => {
      await pool.promise().end();
      await table.drop();
    };
    return mysql({ pool });
  }

  it("confirmations are written: one, several, by name, and of those that failed", async () => {
    const outbox = createOutbox({ database: await open() });
    await table.insert(["1", "2", "3", "4", "5"].map((key) => ({ key, type: "order" })));
    await table.sql("UPDATE local_message SET state = 2");
    const of = (key: string) => ({ type: "order", key });
    expect(await outbox.confirm([of("1")])).toEqual([{ status: "consumed" }]);
    expect(await outbox.confirm([of("2"), of("3")])).toEqual([{ status: "consumed" }, { status: "consumed" }]);
    expect(await outbox.confirm([of("4"), of("9")])).toMatchObject([{ status: "consumed" }, {}]);
    expect(await outbox.confirm([{ ...of("5"), consumer: "billing", error: "no stock" }])).toMatchObject([{}]);
    expect(await table.states()).toEqual({ 2: 1, 4: 4 });
  });

  it("messages are appended to several partitions, handled in one transaction with an effect, and edited", async () => {
    const database = await open();
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 3 });
    let isBroken = true;
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      from: "start",
      transactional: true,
      logger: "silent",
      onFailed: "block",
      retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
      handler: ({ body }) => {
        if (isBroken && Number(body) % 2 === 1) throw new Error("no stock");
      },
    });
    await queue.append(Array.from({ length: 12 }, (_, body) => ({ topic: "orders", body, orderingKey: `k${body}` })));
    const by = { topic: "orders", group: "billing" };
    await until(async () => (await queue.deadLetters(by)).letters.length === 6);
    isBroken = false;
    const [letter] = (await queue.deadLetters(by)).letters;
    const change = { body: 2 };
    await queue.editDeadLetter({ ...by, author: "wang", reason: "test", id: letter?.id ?? "", change });
    await until(async () => (await queue.groups(by))[0]?.lag.count === 0);
    expect((await queue.deadLetters(by)).letters).toHaveLength(5);
    await consumer.stop();
    await queue.close();
  });
});
