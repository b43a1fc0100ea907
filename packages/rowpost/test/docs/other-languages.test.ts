/** The INSERTs of docs/other-languages.md, run as they stand there, and relayed. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { plainHandle } from "../databases/sqlite-setup.ts";
import { createRelayDatabase, type RelayTestService } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

const PAGES = ["other-languages.md", "other-languages.zh-CN.md"].map((name) =>
  readFileSync(fileURLToPath(new URL(`../../../../docs/${name}`, import.meta.url)), "utf8"),
);

function statementsOf(page: string): string[] {
  const fences = [...page.matchAll(/^```sql run\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? "");
  return fences.flatMap((fence) => fence.split(/;\n/)).filter((text) => text.trim() !== "");
}

it("the page has the same statements in both languages", () => {
  const [english, chinese] = PAGES.map(statementsOf);
  expect(english?.length).toBe(5);
  expect(chinese).toEqual(english);
});

async function relayed(service: RelayTestService) {
  const database = await createRelayDatabase(service);
  const broker = memory();
  try {
    const statements = [
      "CREATE TABLE orders (id VARCHAR(36) PRIMARY KEY, amount VARCHAR(36))",
      ...statementsOf(PAGES[0] ?? ""),
    ];
    if (service === "sqlite") {
      const handle = await plainHandle(database.url);
      for (const statement of statements) handle.exec(statement);
      handle.close();
    } else for (const statement of statements) await database.sql(statement);
    const relay = createRelay({ database: database.connect(), broker });
    const { complete } = await relay.drain();
    expect(complete).toBe(true);
    return broker.published();
  } finally {
    await database.drop();
  }
}

const created = {
  type: "order.created",
  key: "4711",
  topic: "orders",
  body: '{"id":"4711","amount":"99.00"}',
  contentType: "application/json",
};
const paid = { type: "order.paid", body: "paid in cash", contentType: "text/plain", orderingKey: "customer-42" };

function sendsWhatTheySay(service: RelayTestService): void {
  it("are published as the page says", async () => {
    const published = await relayed(service);
    expect(published).toMatchObject([created, paid]);
    expect(published[1]?.headers).toMatchObject({ tenant: "7" });
  });
}

describeWithService(["mariadb", "mysql9", "postgres"], "rows from other languages", ({ name }) =>
  sendsWhatTheySay(name as RelayTestService),
);
sendsWhatTheySay("sqlite");
