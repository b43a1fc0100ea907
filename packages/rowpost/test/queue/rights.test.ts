/** The GRANTs of docs/rights.md for the queue, each list with a user who has nothing else. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";

const PAGES = ["rights.md", "rights.zh-CN.md"].map((name) =>
  readFileSync(new URL(`../../../../docs/${name}`, import.meta.url), "utf8"),
);

/** The fences of a page, in their order: those of the outbox, then those of the queue. */
const fences = (page: string): string[] => [...page.matchAll(/```sql\n(.*?)```/gs)].map(([, text = ""]) => text);

test("both pages have the same statements", () => {
  const [english, chinese] = PAGES.map(fences);
  expect(english).toHaveLength(4);
  expect(chinese).toEqual(english);
});

describeWithService(["mariadb", "mysql9", "postgres"], "rights of the queue", ({ name: service }) => {
  const isMysql = service !== "postgres";
  const fence = fences(PAGES[0] ?? "")[isMysql ? 2 : 3] ?? "";
  let server: TestDatabase;
  let admin: Database;
  let tag: string;
  let open: { readonly database: Database; readonly queue: Queue }[];
  let logins: string[];

  async function sql(text: string): Promise<void> {
    const session = await admin.connect({ purpose: "tool" });
    await session.run({ name: "test", text, params: [] });
    await session.close();
  }

  /** The statements under `-- name`, with the names of this test. */
  async function run(name: string): Promise<void> {
    const part = fence.split(/^-- /m).find((text) => text.startsWith(`${name}\n`)) ?? "";
    const statements = part
      .slice(name.length + 1)
      .split(";")
      .map((text) => text.trim())
      .filter((text) => text !== "");
    expect(statements.length).toBeGreaterThan(0);
    for (const statement of statements) {
      const renamed = statement.replaceAll(/\b(producer|consumer|operator)\b/g, `${tag}_$1`);
      await sql(
        isMysql
          ? renamed.replace("messages.", `${server.name}.`)
          : renamed.replaceAll(/ROLE messages\b|AUTHORIZATION messages\b|GRANT messages\b/g, `$&_${tag}`),
      );
    }
  }

  function connect(url: string, isOwner: boolean): Queue {
    const address = new URL(url);
    const role = isOwner ? `-crole=messages_${tag} ` : "";
    if (!isMysql) address.searchParams.set("options", `${role}-csearch_path=messages`);
    const text = address.href.replaceAll("+", "%20");
    const database = isMysql ? mysql({ url: text }) : postgres({ url: text });
    const queue = createQueue({ database });
    open.push({ database, queue });
    return queue;
  }

  async function as(role: string): Promise<Queue> {
    const name = `${tag}_${role}`;
    await sql(isMysql ? `CREATE USER ${name} IDENTIFIED BY 'Pw_1'` : `CREATE ROLE ${name} LOGIN PASSWORD 'Pw_1'`);
    logins.push(name);
    await run(role);
    const url = new URL(server.url);
    [url.username, url.password] = [name, "Pw_1"];
    return connect(url.href, role !== "producer");
  }

  beforeEach(async () => {
    server = await createTestDatabase(service);
    admin = isMysql ? mysql({ url: server.url }) : postgres({ url: server.url });
    tag = `u${server.name.slice(-8)}`;
    [open, logins] = [[], []];
    if (!isMysql) await run("messages");
  });

  afterEach(async () => {
    for (const { queue, database } of open) {
      await queue.close();
      await database.close();
    }
    for (const name of isMysql ? logins : [...logins, `messages_${tag}`]) {
      if (isMysql) await sql(`DROP USER ${name}`);
      else {
        await sql(`DROP OWNED BY ${name} CASCADE`);
        await sql(`DROP ROLE ${name}`);
      }
    }
    await admin.close();
    await server.drop();
  });

  test("producer appends, consumer consumes and keeps house, operator does the rest", async () => {
    await connect(server.url, true).migrate();
    const operator = await as("operator");
    const producer = await as("producer");
    const consumer = await as("consumer");
    await operator.createTopic({ topic: "orders", partitions: 2, retentionMonths: 3 });
    await producer.append([{ topic: "orders", key: "a", body: {}, sourceId: "s1" }]);
    await producer.append([{ topic: "orders", key: "b", body: {} }]);

    const problems: string[] = [];
    const told = (text: string, fields?: object): void => void problems.push(`${text} ${JSON.stringify(fields)}`);
    const handled: string[] = [];
    const running = await consumer.consume({
      topic: "orders",
      group: "billing",
      from: "start",
      retry: { maxAttempts: 1 },
      logger: { debug: () => undefined, info: () => undefined, warn: told, error: told },
      handler: (message) => {
        handled.push(String(message.key));
        if (message.key === "b") throw new Error("no stock");
      },
    });
    const dead = async () => (await operator.deadLetters({ topic: "orders", group: "billing" })).letters[0];
    await vi.waitUntil(dead, { timeout: 40_000, interval: 50 });
    await running.stop();
    expect([...handled].sort()).toEqual(["a", "b"]);
    await consumer.applyRetention();
    expect(problems).toEqual([]);

    const by = { topic: "orders", group: "billing", author: "ann", reason: "test" };
    await operator.pause(by);
    await operator.resume(by);
    expect(await operator.redeliver({ ...by, all: true })).toBeDefined();
    await operator.rewind({ ...by, to: "start" });
    expect((await operator.search({ topic: "orders", key: "a" })).messages).toHaveLength(1);
    expect((await operator.verify({ topic: "orders" })).next).toBeUndefined();
    expect(await operator.deleteTopic("orders")).toBe(true);
  });
});
