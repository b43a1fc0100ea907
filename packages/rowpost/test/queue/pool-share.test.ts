/**
 * `transactional` on a small pool of the application's, which its handlers and others ask for
 * connections too: nobody waits for ever.
 */
import { createPool as createMariadbPool } from "mariadb";
import { createPool } from "mysql2/promise";
import pg from "pg";
import { expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";
import { until } from "../until.ts";
import { createMembers, gate, numbers } from "./members.ts";

const PARTITIONS = 6;
const MESSAGES = 60;

interface Pooled {
  readonly database: Database;
  readonly ask: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
}

/** With four connections for the application. */
const POOLS: Readonly<Record<string, (url: URL) => Pooled>> = {
  mysql2(url) {
    url.protocol = "mysql:";
    const pool = createPool({ uri: url.href, connectionLimit: 4 });
    return { database: mysql({ pool }), ask: () => pool.query("SELECT 1"), end: () => pool.end() };
  },
  mariadb({ hostname: host, port, username: user, pathname }) {
    const address = { host, port: Number(port), user, database: pathname.slice(1), allowPublicKeyRetrieval: true };
    // Sessions of the queue are connections of this pool too.
    const pool = createMariadbPool({ ...address, connectionLimit: 12 });
    return { database: mariadb({ pool }), ask: () => pool.query("SELECT 1"), end: () => pool.end() };
  },
  pg(url) {
    const pool = new pg.Pool({ connectionString: url.href, max: 4 });
    return { database: postgres({ pool }), ask: () => pool.query("SELECT 1"), end: () => pool.end() };
  },
};

describeWithService(["mariadb", "mysql9", "postgres"], "transactional on a pool of four connections", (service) => {
  it.each(service.name === "postgres" ? ["pg"] : ["mysql2", "mariadb"])(
    "takes half of it: handlers and others get one, and each partition its turn (%s)",
    { timeout: 60_000 },
    async (name) => {
      const made = await createTestDatabase(service.name);
      const { database, ask, end } = (POOLS[name] as (url: URL) => Pooled)(new URL(made.url));
      const queue = createQueue({ database });
      const members = createMembers(queue);
      const lines: string[] = [];
      const asked = gate();
      const told = (line: string, fields?: object): void => void lines.push(`${line} ${JSON.stringify(fields)}`);
      try {
        await queue.migrate();
        await queue.createTopic({ topic: "orders", partitions: PARTITIONS });
        const keyed = numbers(MESSAGES).map((message) => ({ ...message, orderingKey: message.key as string }));
        const ids = await queue.append(keyed);
        const [held, handled] = [new Set<number>(), new Set<unknown>()];
        let most = 0;
        await members.start({
          transactional: true,
          batchSize: 1,
          drainTimeoutMs: 1_000,
          logger: { debug: told, info: told, warn: told, error: told },
          async handler({ key, partition }) {
            held.add(partition);
            most = Math.max(most, held.size);
            await asked.opened;
            await ask();
            handled.add(key);
            held.delete(partition);
          },
        });
        await until(() => held.size === 2);
        // So that the others would have begun, if they could.
        for (let call = 0; call < 20; call += 1)
          await queue.append([{ topic: "orders", key: `more ${call}`, body: call }]);
        asked.open();
        await until(() => handled.size === ids.length + 20);
        expect(most).toBe(2);
        expect(lines.filter((line) => line.includes("half of the pool"))).toEqual([
          expect.stringContaining('"pool":4,"atOnce":2,"partitions":6,"raiseBy":8'),
        ]);
      } finally {
        asked.open();
        await members.stopAll();
        await queue.close();
        await database.close();
        await end();
        await made.drop();
      }
    },
  );
});
