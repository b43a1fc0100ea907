/**
 * An append that nobody awaits, in a transaction of the user's that ends under it: the message must
 * not be there alone, nor in the next transaction of the connection.
 */
import { createConnection as mariadbConnection } from "mariadb";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { createTestDatabase, type DatabaseServiceName, describeWithService } from "../services.ts";

/** A connection of the user's, and what ends it. */
interface Connection {
  readonly handle: unknown;
  query(text: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Driver {
  open(url: string): Database;
  connect(url: string): Promise<Connection>;
  /** It asks the server by a statement of its own, and sees no end right behind that one. */
  readonly asksApart?: boolean;
}

const MYSQL2: Driver = {
  open: (url) => mysql({ url }),
  async connect(url) {
    const handle = await createConnection(url.replace(/^mariadb:/, "mysql:"));
    return { handle, query: (text) => handle.query(text), close: () => handle.end() };
  },
};
const MARIADB: Driver = {
  open: (url) => mariadb({ url }),
  async connect(url) {
    const handle = await mariadbConnection(url.replace(/^mysql:/, "mariadb:"));
    return { handle, query: (text) => handle.query(text), close: () => handle.end() };
  },
};
const PG: Driver = {
  open: (url) => postgres({ url }),
  async connect(url) {
    const handle = new pg.Client({ connectionString: url });
    await handle.connect();
    return { handle, query: (text) => handle.query(text), close: () => handle.end() };
  },
};
/** As pg was before 8.18: it does not know whether it is in a transaction. */
const OLDER_PG: Driver = {
  ...PG,
  asksApart: true,
  async connect(url) {
    const connection = await PG.connect(url);
    const handle = new Proxy(connection.handle as object, {
      get(target, name) {
        const found = name === "getTransactionStatus" ? undefined : (Reflect.get(target, name) as unknown);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
    return { ...connection, handle };
  },
};

function defineCases(service: DatabaseServiceName, driver: Driver): void {
  let made: Awaited<ReturnType<typeof createTestDatabase>>;
  let database: Database;
  let queue: Queue;
  let user: Connection;
  beforeEach(async () => {
    made = await createTestDatabase(service);
    database = driver.open(made.url);
    queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    user = await driver.connect(made.url);
    // What is asked of a connection once, before the first statement, is behind us.
    await user.query("BEGIN");
    await queue.append(user.handle, [{ topic: "orders", body: 0 }]);
    await user.query("ROLLBACK");
  });
  afterEach(async () => {
    await user.close();
    await queue.close();
    await database.close();
    await made.drop();
  });

  async function messages(): Promise<number> {
    const [month] = await database.queue.store().topics.months("orders");
    const session = await database.connect({ purpose: "tool" });
    const text = `SELECT COUNT(*) AS n FROM orders_message_info_${month}`;
    const { rows } = await session.run({ name: "count", text, params: [] });
    await session.close();
    return Number(rows[0]?.["n"]);
  }

  /** Sends what ends the transaction when so many statements of the append have been answered. */
  function endingAfter(
    count: number,
    texts: readonly string[],
  ): { readonly handle: unknown; readonly ended: () => Promise<void> } {
    const own = user.handle as Record<string, (...args: unknown[]) => Promise<unknown>>;
    let left = count;
    let ending: Promise<unknown> = Promise.resolve();
    const end = (): void => {
      left -= 1;
      if (left === 0) ending = Promise.all(texts.map((text) => user.query(text)));
    };
    const handle = new Proxy(own, {
      get(target, name: string) {
        const found = Reflect.get(target, name) as unknown;
        if (typeof found !== "function") return found;
        const method = found.bind(target) as (...args: unknown[]) => unknown;
        if (name !== "query" && name !== "execute") return method;
        return (...args: unknown[]) => {
          const answer = method(...args) as Promise<unknown>;
          end();
          return answer;
        };
      },
    });
    const ended = async (): Promise<void> => {
      // It had no such statement.
      while (left > 0) end();
      await ending;
    };
    return { handle, ended };
  }

  it("takes the next id each time, odd ones too, where the clock is behind the counter", async () => {
    const last = BigInt(Date.now() + 3_600_000 - Date.UTC(2020, 0, 1)) * 65_536n;
    await user.query(`UPDATE message_topic_partition SET last_id = ${last}`);
    await user.query("BEGIN");
    const ids = await queue.append(user.handle, [{ topic: "orders", body: 1 }]);
    ids.push(
      ...(await queue.append(
        user.handle,
        [2, 3].map((body) => ({ topic: "orders", body })),
      )),
    );
    await user.query("COMMIT");
    expect(ids.map((id) => (BigInt(id) >> 6n) - last)).toEqual([1n, 2n, 3n]);
    expect(await messages()).toBe(3);
  });

  for (const [name, texts] of [
    ["in no transaction", ["ROLLBACK"]],
    ["in the next transaction", ["ROLLBACK", "BEGIN"]],
  ] as const) {
    for (const count of [1, 2, 3]) {
      // Known: all of it is appended in the next transaction then, whole and with its counter.
      const isKnown = driver.asksApart === true && count === 1 && texts.length > 1;
      (isKnown ? it.fails : it)(`is not appended ${name}, when the other ended behind statement ${count}`, async () => {
        await user.query("BEGIN");
        const { ended, handle } = endingAfter(count, texts);
        const settled = await Promise.allSettled([queue.append(handle, [{ topic: "orders", body: 1 }])]);
        await ended();
        await user.query("COMMIT");
        // Behind the last of its statements: it was whole, and went with its transaction.
        expect({ messages: await messages(), status: settled[0].status }).toMatchObject({ messages: 0 });
      });
    }
  }

  it("is there when the transaction stays open, also beside another one", async () => {
    await user.query("BEGIN");
    await queue.append(user.handle, [{ topic: "orders", body: 1 }]);
    await queue.append(user.handle, [{ topic: "orders", body: 2 }]);
    await user.query("COMMIT");
    expect(await messages()).toBe(2);
  });
}

describe("an append that nobody awaits", () => {
  describeWithService(["mariadb", "mysql9", "mysql8"], "by mysql2", ({ name }) => defineCases(name, MYSQL2));
  describeWithService(["mariadb", "mysql9"], "by mariadb", ({ name }) => defineCases(name, MARIADB));
  describeWithService("postgres", "by pg", ({ name }) => defineCases(name, PG));
  describeWithService("postgres", "by pg before 8.18", ({ name }) => defineCases(name, OLDER_PG));
});
