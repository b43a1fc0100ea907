/**
 * docs/schema-tools.md names every table that migrations make: a tool drops those that are not
 * named, and without its inbox every redelivery takes effect again.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox } from "../../src/inbox/inbox.ts";
import { createQueue } from "../../src/queue/queue.ts";

/** As drizzle-kit matches a name. */
function glob(pattern: string): RegExp {
  return new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
}

describe("the lists of docs/schema-tools.md", () => {
  let database: Database;
  let session: Session;
  let tables: readonly string[];

  beforeAll(async () => {
    database = sqlite({ file: ":memory:" });
    await migrate(database, { layout: database.defaultLayout });
    await createInbox({ database, consumer: "shop" }).migrate();
    const queue = createQueue({ database, producerGroup: "shop" });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 1 });
    await queue.append({ topic: "orders", key: "1", body: 1 });
    session = await database.connect({ purpose: "tool" });
    const text = "SELECT name AS name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    tables = (await session.run({ name: "tables", text, params: [] })).rows.map((row) => String(row["name"]));
    await queue.close();
  });
  afterAll(async () => {
    await session.close();
    await database.close();
  });

  test.each(["schema-tools.md", "schema-tools.zh-CN.md"])("%s leaves no table out", async (page) => {
    const text = await readFile(fileURLToPath(new URL(`../../../../docs/${page}`, import.meta.url)), "utf8");
    expect(tables.length).toBeGreaterThan(25);
    expect(tables.filter((name) => name.includes("_message_info_"))).not.toEqual([]);

    const [, others = ""] = /const others =.*\n\s*"([^"]*)"/.exec(text) ?? [];
    const [, filter = ""] = /tablesFilter: \[([^\]]*)\]/.exec(text) ?? [];
    const globs = [...filter.matchAll(/"!([^"]*)"/g)].map(([, each = ""]) => glob(each));
    globs.push(...others.split(",").map((name) => glob(`message_${name}`)));
    expect(tables.filter((name) => !globs.some((each) => each.test(name)))).toEqual([]);

    const [, skipped = ""] = /skipTables: \[([^\]]*)\],\n/.exec(text) ?? [];
    const patterns = [...skipped.matchAll(/^\s*\/(.*)\/,$/gm)].map(([, each = ""]) => new RegExp(each));
    expect(tables.filter((name) => !patterns.some((each) => each.test(name)))).toEqual([]);

    const [, external = ""] = /external: \[([^\]]*)\]/.exec(text) ?? [];
    const listed = [...external.matchAll(/"([^"]*)"/g)].map(([, each = ""]) => each).sort();
    // Those of the queue cannot be listed: each month brings new ones.
    const isOfQueue = (name: string): boolean =>
      /_message_info_/.test(name) || (/^message_/.test(name) && !name.startsWith("message_inbox"));
    expect(tables.filter((name) => !isOfQueue(name)).sort()).toEqual(listed);
  });
});
