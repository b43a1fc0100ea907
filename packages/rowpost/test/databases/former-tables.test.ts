/** A database that an earlier version has migrated: what it made and nobody needs is dropped. */
import { expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createLayout, defaultLayout, formerTables } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

async function dropsThem(database: Database): Promise<void> {
  const session = await database.connect({ purpose: "tool" });
  const sql = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
  try {
    await migrate(database, { layout: defaultLayout });
    // As migration 10 left them, with rows of a change that nobody ends.
    for (const table of formerTables(defaultLayout)) {
      await sql(`CREATE TABLE ${table} (id char(36) PRIMARY KEY)`);
      await sql(`INSERT INTO ${table} VALUES ('1')`);
    }
    // Where that never ran, they are somebody else's.
    await sql("DELETE FROM local_message_migration WHERE version = 13");
    await migrate(database, { layout: defaultLayout });
    for (const table of formerTables(defaultLayout)) expect(await sql(`SELECT id FROM ${table}`)).toHaveLength(1);
    await sql(
      "UPDATE local_message_migration SET version = 10, name = 'changes of many messages', checksum = 'x' WHERE version = 13",
    );
    const { applied, warnings } = await migrate(database, { layout: defaultLayout });
    expect([applied.length, applied[0], warnings]).toEqual([1, expect.stringMatching(/^13 /), []]);
    for (const table of formerTables(defaultLayout)) await expect(sql(`SELECT id FROM ${table}`)).rejects.toThrow();
    expect((await migrate(database, { layout: defaultLayout })).applied).toEqual([]);
    // Another message table with the same tables beside it.
    const layout = createLayout({ table: "second", companion: defaultLayout.companion });
    expect((await migrate(database, { layout })).applied.length).toBeGreaterThan(10);
  } finally {
    await session.close();
    await database.close();
  }
}

describeWithService(["mariadb", "mysql9", "postgres"], "tables of earlier versions", ({ name }) => {
  test("are dropped, whatever is in them", async () => {
    const place = await createTestDatabase(name);
    try {
      await dropsThem(name === "postgres" ? postgres({ url: place.url }) : mysql({ url: place.url }));
    } finally {
      await place.drop();
    }
  });
});

test("are dropped in SQLite too", async () => {
  await dropsThem(sqlite({ file: ":memory:" }));
});
