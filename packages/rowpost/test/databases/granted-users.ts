/** Users who have the rights of docs/rights.md, and nothing else. */
import { readFileSync } from "node:fs";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";

const page = readFileSync(new URL("../../../../docs/rights.md", import.meta.url), "utf8");

type Engine = "mysql" | "postgres";

/** The statements under `-- name` in the fence of an engine. */
export function grants(engine: Engine, name: string): readonly string[] {
  const fence = [...page.matchAll(/```sql\n(.*?)```/gs)][engine === "mysql" ? 0 : 1]?.[1] ?? "";
  const list = fence.split(/^-- /m).find((part) => part.startsWith(`${name}\n`)) ?? "";
  return [...list.matchAll(/GRANT [^;]+/g)].map(([statement]) => statement);
}

/** A database with rowpost's tables, and users on it. */
export interface GrantedDatabase {
  readonly engine: Engine;
  readonly owner: Database;
  /** As the owner. */
  sql(text: string): Promise<void>;
  /** A user with the rights of this list, or with none on the tables. */
  user(role: string, rights: readonly string[]): Promise<{ readonly url: string; readonly database: Database }>;
  drop(): Promise<void>;
}

/** Makes it. */
export async function createGrantedDatabase(service: DatabaseServiceName): Promise<GrantedDatabase> {
  const engine = service === "postgres" ? "postgres" : "mysql";
  const open = (url: string): Database => (engine === "mysql" ? mysql({ url }) : postgres({ url }));
  const server = await createTestDatabase(service);
  const owner = open(server.url);
  const users: { readonly name: string; readonly database: Database }[] = [];
  await migrate(owner, { layout: owner.defaultLayout });

  async function sql(text: string): Promise<void> {
    const session = await owner.connect({ purpose: "tool" });
    await session.run({ name: "test", text, params: [] });
    await session.close();
  }

  return {
    engine,
    owner,
    sql,
    async user(role, rights) {
      const name = `${server.name.slice(-8)}_${role}`.replace(/^/, "u");
      await sql(
        engine === "mysql" ? `CREATE USER ${name} IDENTIFIED BY 'Pw_1'` : `CREATE ROLE ${name} LOGIN PASSWORD 'Pw_1'`,
      );
      // Somebody who may not even use the database cannot connect to it.
      if (engine === "mysql") await sql(`GRANT CREATE TEMPORARY TABLES ON ${server.name}.* TO ${name}`);
      for (const right of rights) await sql(right.replace(new RegExp(`TO ${role}$`), `TO ${name}`));
      const url = new URL(server.url);
      [url.username, url.password] = [name, "Pw_1"];
      const database = open(url.href);
      users.push({ name, database });
      return { url: url.href, database };
    },
    async drop() {
      for (const { name, database } of users) {
        await database.close();
        if (engine === "postgres") await sql(`DROP OWNED BY ${name}`);
        await sql(engine === "mysql" ? `DROP USER ${name}` : `DROP ROLE ${name}`);
      }
      await owner.close();
      await server.drop();
    },
  };
}
