/**
 * Databases (on PostgreSQL schemas) that one connection goes through: each has all tables, and what
 * a transaction writes has to be in the one that it is in.
 */
import pg from "pg";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createOutbox, migrate } from "../../src/index.ts";
import { createQueue } from "../../src/queue/index.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";

const TOPIC = "orders";
const TYPE = "order.created";
const TENANTS = 4;
/** Through all of them: 20 transactions. */
const ROUNDS = 5;

/** Begins, goes to the tenant by this statement, works, commits. */
export type InTenant = (use: string, work: (tx: unknown) => Promise<void>) => Promise<void>;

export interface Tenants {
  /** Of the first one. */
  readonly url: string;
  /**
   * In each transaction an enqueue, a handling, a confirmation and an append. Resolves to what each
   * tenant holds of these transactions, and what it should hold.
   */
  walk(database: Database, inTenant: InTenant): Promise<{ readonly found: Held; readonly expected: Held }>;
  drop(): Promise<void>;
}

/** Keys, per tenant and table. */
type Held = Readonly<Record<string, Readonly<Record<"enqueued" | "confirmed" | "appended" | "handled", string[]>>>>;

interface Place {
  readonly tenants: readonly { readonly name: string; readonly url: string; readonly database: Database }[];
  readonly use: (name: string) => string;
  drop(): Promise<void>;
}

let walks = 0;

export async function createTenants(service: DatabaseServiceName): Promise<Tenants> {
  const place = await (service === "postgres" ? inSchemas() : inDatabases(service));
  const { tenants } = place;
  const [first] = tenants;
  if (first === undefined) throw new Error("no tenants");
  for (const { database } of tenants) {
    await migrate(database, { layout: database.defaultLayout });
    await createInbox({ database }).migrate();
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: TOPIC, partitions: 2 });
    await queue.close();
  }

  async function heldBy({ database }: { readonly database: Database }, keys: ReadonlySet<string>) {
    const queue = createQueue({ database });
    const { messages } = await queue.search({ topic: TOPIC, limit: 200 });
    await queue.close();
    const column = (sql: string): Promise<string[]> =>
      database.transaction(async (tx) => {
        const rows = await tx.query<{ value: string }>(sql);
        return rows.map(({ value }) => value).filter((value) => keys.has(value));
      });
    const select = "SELECT message_key AS value FROM";
    return {
      enqueued: await column(`${select} local_message ORDER BY id`),
      confirmed: await column(`${select} local_message WHERE state = 4 ORDER BY id`),
      appended: messages.flatMap(({ key }) => (typeof key === "string" && keys.has(key) ? [key] : [])).sort(),
      handled: await column(`${select} message_inbox ORDER BY message_key`),
    };
  }

  return {
    url: first.url,
    async walk(database, inTenant) {
      const outbox = createOutbox({ database });
      const inbox = createInbox({ database, consumer: "stock" });
      const queue = createQueue({ database });
      walks += 1;
      // The same in each.
      const keys = Array.from({ length: ROUNDS }, (_, round) => `${walks}-${round}`);
      // A driver may prepare a text when it comes again: before the first move as well as after it.
      const [early, late] = [keys.slice(0, 3), keys.slice(3)];
      const visits = [
        ...tenants.flatMap(({ name }) => early.map((key) => ({ name, key }))),
        ...late.flatMap((key) => tenants.map(({ name }) => ({ name, key }))),
      ];
      for (const { key, name } of visits) {
        await inTenant(place.use(name), async (tx) => {
          await outbox.enqueue(tx, { type: TYPE, key, topic: TOPIC, body: {} });
          await inbox.handle(tx, { message: { type: TYPE, key } }, async () => undefined);
          await outbox.confirm([{ type: TYPE, key }], { tx });
          await queue.append(tx, [{ topic: TOPIC, key, body: {} }]);
        });
      }
      await queue.close();
      const each = { enqueued: keys, confirmed: keys, appended: keys, handled: keys };
      const found: Record<string, Held[string]> = {};
      for (const tenant of tenants) found[tenant.name] = await heldBy(tenant, new Set(keys));
      return { found, expected: Object.fromEntries(tenants.map(({ name }) => [name, each])) };
    },
    async drop() {
      for (const { database } of tenants) await database.close();
      await place.drop();
    },
  };
}

async function inDatabases(service: DatabaseServiceName): Promise<Place> {
  const made = await Promise.all(Array.from({ length: TENANTS }, () => createTestDatabase(service)));
  return {
    tenants: made.map(({ name, url: given }) => {
      const url = given.replace(/^mariadb:/, "mysql:");
      return { name, url, database: mysql({ url }) };
    }),
    use: (name) => `USE ${name}`,
    drop: async () => {
      for (const each of made) await each.drop();
    },
  };
}

async function inSchemas(): Promise<Place> {
  const made = await createTestDatabase("postgres");
  const { url } = made;
  const names = Array.from({ length: TENANTS }, (_, index) => `tenant_${index}`);
  const pools = names.map((name) => new pg.Pool({ connectionString: url, options: `-c search_path=${name}` }));
  for (const [index, name] of names.entries()) await pools[index]?.query(`CREATE SCHEMA ${name}`);
  return {
    tenants: names.map((name, index) => ({ name, url, database: postgres({ pool: pools[index] }) })),
    use: (name) => `SET search_path TO ${name}`,
    async drop() {
      for (const pool of pools) await pool.end();
      await made.drop();
    },
  };
}
