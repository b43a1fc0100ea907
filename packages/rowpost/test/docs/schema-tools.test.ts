/**
 * docs/schema-tools.md names every table that migrations make: a tool drops those that are not
 * named, and without its inbox every redelivery takes effect again.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox } from "../../src/inbox/inbox.ts";
import { createQueue } from "../../src/queue/queue.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";

async function read(page: string): Promise<string> {
  return await readFile(fileURLToPath(new URL(`../../../../docs/${page}`, import.meta.url)), "utf8");
}

/** As drizzle-kit matches a name. */
function glob(pattern: string): RegExp {
  return new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
}

/** Every table that rowpost makes, those of a month of the queue too. */
async function makeTables(database: Database): Promise<void> {
  await migrate(database, { layout: database.defaultLayout });
  await createInbox({ database, consumer: "shop" }).migrate();
  const queue = createQueue({ database, producerGroup: "shop" });
  await queue.migrate();
  await queue.createTopic({ topic: "orders", partitions: 1 });
  await queue.append({ topic: "orders", key: "1", body: 1 });
  await queue.close();
}

describe("the lists of docs/schema-tools.md", () => {
  let database: Database;
  let session: Session;
  let tables: readonly string[];

  beforeAll(async () => {
    database = sqlite({ file: ":memory:" });
    await makeTables(database);
    session = await database.connect({ purpose: "tool" });
    const text = "SELECT name AS name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    tables = (await session.run({ name: "tables", text, params: [] })).rows.map((row) => String(row["name"]));
  });
  afterAll(async () => {
    await session.close();
    await database.close();
  });

  test.each(["schema-tools.md", "schema-tools.zh-CN.md"])("%s leaves no table out", async (page) => {
    const text = await read(page);
    expect(tables.length).toBeGreaterThan(25);
    expect(tables.filter((name) => name.includes("_message_info_"))).not.toEqual([]);

    const [, others = ""] = /const others =.*\n\s*"([^"]*)"/.exec(text) ?? [];
    const [, filter = ""] = /tablesFilter: \[([^\]]*)\]/.exec(text) ?? [];
    const globs = [...filter.matchAll(/"!([^"]*)"/g)].map(([, each = ""]) => glob(each));
    globs.push(...others.split(",").map((name) => glob(`message_${name}`)));
    expect(tables.filter((name) => !globs.some((each) => each.test(name)))).toEqual([]);

    const patterns = skipTablesOf(text);
    expect(tables.filter((name) => !patterns.some((each) => each.test(name)))).toEqual([]);

    const [, external = ""] = /external: \[([^\]]*)\]/.exec(text) ?? [];
    const listed = [...external.matchAll(/"([^"]*)"/g)].map(([, each = ""]) => each).sort();
    // Those of the queue cannot be listed: each month brings new ones.
    const isOfQueue = (name: string): boolean =>
      /_message_info_/.test(name) || (/^message_/.test(name) && !name.startsWith("message_inbox"));
    expect(tables.filter((name) => !isOfQueue(name)).sort()).toEqual(listed);
  });
});

// Prisma downloads a program of its own from a host of its own: what the page says of it is from
// its documentation.
describeWithService(["mariadb", "mysql9", "postgres"], "a real push beside rowpost's tables", ({ name }) => {
  let place: TestDatabase;
  let database: Database;
  let session: Session;
  beforeEach(async () => {
    place = await createTestDatabase(name);
    database = name === "postgres" ? postgres({ url: place.url }) : mysql({ url: place.url });
    await makeTables(database);
    session = await database.connect({ purpose: "tool" });
    await session.run({ name: "stranger", text: "CREATE TABLE stranger (id INT)", params: [] });
  });
  afterEach(async () => {
    await session.close();
    await database.close();
    await place.drop();
  });

  /** Every column of every table, as a push would change them. */
  async function columns(): Promise<ReadonlyMap<string, string>> {
    const schema = name === "postgres" ? "current_schema()" : "DATABASE()";
    const type = name === "postgres" ? "udt_name" : "COLUMN_TYPE";
    const text = `SELECT table_name AS t, column_name AS c, ${type} AS y, is_nullable AS n, column_default AS d
      FROM information_schema.columns WHERE table_schema = ${schema}`;
    const { rows } = await session.run({ name: "columns", text, params: [] });
    return new Map(rows.map(({ c, d, n, t, y }) => [`${String(t)}.${String(c)}`, JSON.stringify([y, n, d])]));
  }

  async function pushed(push: () => Promise<unknown>): Promise<{ gone: string[]; made: string[] }> {
    const before = await columns();
    await push();
    const after = await columns();
    const differing = [...before].filter(([column, type]) => after.get(column) !== type);
    return {
      gone: [...new Set(differing.map(([column]) => column.split(".")[0] ?? ""))],
      made: [...after.keys()].filter((column) => !before.has(column)),
    };
  }

  const kept = { gone: [], made: ["shop_order.id"] };
  const url = (): string => place.url.replace(/^mariadb:/, "mysql:");

  test("TypeORM synchronize leaves them", async () => {
    const { DataSource, EntitySchema } = await import("typeorm");
    const order = new EntitySchema({ name: "shop_order", columns: { id: { type: "int", primary: true } } });
    const type = name === "postgres" ? "postgres" : "mysql";
    const source = new DataSource({ type, url: url(), entities: [order], synchronize: true });
    expect(await pushed(() => source.initialize())).toEqual(kept);
    await source.destroy();
  });

  test.each([{}, { alter: true }, { force: true }])("Sequelize sync(%j) leaves them", async (options) => {
    const { DataTypes, Sequelize } = await import("sequelize");
    const sequelize = new Sequelize(url(), { logging: false });
    const columnsOfOrder = { id: { type: DataTypes.INTEGER, primaryKey: true } };
    sequelize.define("shop_order", columnsOfOrder, { freezeTableName: true, timestamps: false });
    expect(await pushed(() => sequelize.sync(options))).toEqual(kept);
    await sequelize.close();
  });

  test("MikroORM updateSchema drops them, and with the page's skipTables, or safe, leaves them", async () => {
    const skipTables = skipTablesOf(await read("schema-tools.md"));
    const { EntitySchema } = await import("@mikro-orm/core");
    const { MikroORM } = name === "postgres" ? await import("@mikro-orm/postgresql") : await import("@mikro-orm/mysql");
    const order = new EntitySchema<{ id: number }>({
      name: "shop_order",
      tableName: "shop_order",
      properties: { id: { type: "integer", primary: true, autoincrement: false } },
    });
    const push = async (options: { skipTables?: RegExp[]; safe?: boolean }) => {
      const { safe = false, ...schemaGenerator } = options;
      const orm = await MikroORM.init({ clientUrl: url(), entities: [order], schemaGenerator });
      const result = await pushed(() => orm.schema.updateSchema({ safe }));
      await orm.close(true);
      return result;
    };
    expect(await push({ safe: true })).toEqual(kept);
    await session.run({ name: "stranger", text: "DROP TABLE shop_order", params: [] });
    expect(await push({ skipTables })).toEqual({ gone: ["stranger"], made: kept.made });
    expect((await push({})).gone).toContain("message_inbox");
  });
});

/** A folder with drizzle-kit, drizzle-orm and mysql2, which tools/test-peers.sh makes. */
const drizzle = process.env["ROWPOST_TEST_DRIZZLE_KIT"];

describeWithService(drizzle === undefined ? [] : ["mariadb", "mysql9"], "drizzle-kit push --force", ({ name }) => {
  test("drops rowpost's tables, and with the page's filter leaves them", { timeout: 120_000 }, async () => {
    const place = await createTestDatabase(name);
    const database = mysql({ url: place.url });
    await makeTables(database);
    const session = await database.connect({ purpose: "tool" });
    const tables = async (): Promise<string[]> => {
      const { rows } = await session.run({ name: "tables", text: "SHOW TABLES", params: [] });
      return rows.flatMap((row) => Object.values(row).map(String)).sort();
    };
    const folder = await mkdtemp(join(drizzle ?? "", "push-"));
    const push = async (config: string): Promise<void> => {
      const credentials = `dbCredentials: { url: ${JSON.stringify(place.url.replace(/^mariadb:/, "mysql:"))} },`;
      const own = config.replace('schema: "./src/schema.ts",', `schema: "./schema.ts", ${credentials}`);
      expect(own).toContain(credentials);
      await writeFile(join(folder, "drizzle.config.ts"), `import { defineConfig } from "drizzle-kit";\n${own}`);
      const program = join(drizzle ?? "", "node_modules/drizzle-kit/bin.cjs");
      await promisify(execFile)(process.execPath, [program, "push", "--force"], { cwd: folder });
    };
    try {
      const schema = `import { int, mysqlTable } from "drizzle-orm/mysql-core";
        export const order = mysqlTable("shop_order", { id: int().primaryKey() });`;
      await writeFile(join(folder, "schema.ts"), schema);
      const before = await tables();
      const [, config = ""] = /```ts\n(const others[\s\S]*?)```/.exec(await read("schema-tools.md")) ?? [];
      await push(config);
      expect(await tables()).toEqual([...before, "shop_order"].sort());
      await push(config.replace(/tablesFilter: \[[^\]]*\],/, ""));
      expect(await tables()).toEqual(["shop_order"]);
    } finally {
      await rm(folder, { recursive: true });
      await session.close();
      await database.close();
      await place.drop();
    }
  });
});

function skipTablesOf(page: string): RegExp[] {
  const [, skipped = ""] = /skipTables: \[([^\]]*)\],\n/.exec(page) ?? [];
  return [...skipped.matchAll(/^\s*\/(.*)\/,$/gm)].map(([, each = ""]) => new RegExp(each));
}
