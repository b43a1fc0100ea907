/**
 * An append that nobody awaits, in a transaction of the user's that ends under it: the message must
 * not be there alone, nor in the next transaction of the connection.
 */
import { DatabaseSync } from "@photostructure/sqlite";
import { createConnection as mariadbConnection } from "mariadb";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { createTestDatabase, type DatabaseServiceName, describeWithService } from "../services.ts";
import { sqlitePlace } from "./places.ts";

/** A connection of the user's, and what ends it. */
interface Connection {
  readonly handle: unknown;
  query(text: string): Promise<unknown>;
  close(): Promise<unknown>;
}

interface Driver {
  open(url: string): Database;
  connect(url: string): Promise<Connection>;
  /** It sees of other statements only the one right before its own. */
  readonly seesOne?: boolean;
}

const MYSQL2: Driver = {
  seesOne: true,
  open: (url) => mysql({ url }),
  async connect(url) {
    const handle = await createConnection(url.replace(/^mariadb:/, "mysql:"));
    return { handle, query: (text) => handle.query(text), close: () => handle.end() };
  },
};
const MARIADB: Driver = {
  seesOne: true,
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

/** Statements answer before the call returns, so the end can only come behind all of them. */
const SQLITE: Driver = {
  open: (file) => sqlite({ file }),
  async connect(file) {
    const handle = new DatabaseSync(file);
    const query = async (text: string): Promise<void> => {
      if (!/COMMIT|ROLLBACK/.test(text) || handle.isTransaction) handle.exec(text);
    };
    return { handle, query, close: async () => handle.close() };
  },
};

/** How a transaction ends under an append, and what comes last: only the first one commits. */
const ENDINGS = [
  { texts: ["COMMIT", "BEGIN"], last: "ROLLBACK", outcome: "is there, or refused" },
  { texts: ["ROLLBACK"], last: "COMMIT", outcome: "is not appended" },
  { texts: ["ROLLBACK", "BEGIN"], last: "COMMIT", outcome: "is not appended" },
  { texts: ["ROLLBACK", "BEGIN", "SELECT 1"], last: "COMMIT", outcome: "is not appended" },
  { texts: ["ROLLBACK TO SAVEPOINT before_it"], last: "COMMIT", outcome: "is not appended" },
] as const;

type Made = { readonly url: string; drop(): Promise<void> };

function defineCases(make: () => Promise<Made>, driver: Driver): void {
  let made: Made;
  let database: Database;
  let queue: Queue;
  let session: Session;
  let user: Connection;
  beforeAll(async () => {
    made = await make();
    database = driver.open(made.url);
    queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    session = await database.connect({ purpose: "tool" });
  });
  beforeEach(async () => {
    user = await driver.connect(made.url);
    // What is asked of a connection once, before the first statement, is behind us.
    await user.query("BEGIN");
    await queue.append(user.handle, [{ topic: "orders", body: 0 }]);
    await user.query("ROLLBACK");
  });
  afterEach(() => user.close());
  afterAll(async () => {
    await session.close();
    await queue.close();
    await database.close();
    await made.drop();
  });

  async function messages(): Promise<number> {
    const [month] = await queue.months("orders");
    const text = `SELECT COUNT(*) AS n FROM orders_message_info_${month}`;
    const { rows } = await session.run({ name: "count", text, params: [] });
    return Number(rows[0]?.["n"]);
  }

  /** Ends the transaction behind so many statements of the append, once. */
  function endingBehind(count: number, texts: readonly string[]) {
    let ending: Promise<unknown> | undefined;
    const end = (): Promise<unknown> => (ending ??= Promise.all(texts.map((text) => user.query(text))));
    let sent = 0;
    const counting = (found: unknown, target: object, isStatement: boolean) => {
      if (typeof found !== "function") return found;
      const method = found.bind(target) as (...args: unknown[]) => unknown;
      if (!isStatement) return method;
      return (...args: unknown[]) => {
        const answer = method(...args);
        sent += 1;
        if (sent === count) void end();
        return answer;
      };
    };
    const handle = new Proxy(user.handle as object, {
      get: (target, name) => counting(Reflect.get(target, name), target, name === "query" || name === "execute"),
    });
    return { end, handle };
  }

  it("is not appended as the first on its connection, when ROLLBACK and BEGIN came behind the call", async () => {
    const before = await messages();
    const fresh = await driver.connect(made.url);
    await fresh.query("BEGIN");
    const appending = queue.append(fresh.handle, [{ topic: "orders", body: 1 }]);
    const ending = Promise.all([fresh.query("ROLLBACK"), fresh.query("BEGIN")]);
    await Promise.allSettled([appending]);
    await ending;
    await fresh.query("COMMIT");
    await fresh.close();
    expect((await messages()) - before).toBe(0);
  });

  // Only PostgreSQL has a mark that goes with a savepoint.
  if (driver === PG) {
    it("is not appended in a transaction of rowpost's own, when its user goes back to a savepoint behind it", async () => {
      const before = await messages();
      const work = database.transaction(async (tx) => {
        await tx.query("SAVEPOINT before_it");
        const appending = queue.append(tx, [{ topic: "orders", body: 1 }]);
        const back = tx.query("ROLLBACK TO SAVEPOINT before_it");
        await Promise.allSettled([appending]);
        await back;
      });
      await Promise.allSettled([work]);
      expect((await messages()) - before).toBe(0);
    });
  }

  for (const topicIs of ["known", "new"] as const) {
    for (const { last, outcome, texts } of ENDINGS) {
      if (driver.seesOne === true && texts.length > 2) continue;
      for (const count of driver === SQLITE ? [0] : [0, 1, 2, 3, 4]) {
        const behind = `${texts.join(" and ")} came behind statement ${count}`;
        it(`of a ${topicIs} topic ${outcome}, when ${behind}`, async () => {
          const before = await messages();
          const used = topicIs === "known" ? queue : createQueue({ database });
          await user.query("BEGIN");
          // In InnoDB a savepoint needs no more than this; the append has not begun.
          await user.query("SAVEPOINT before_it");
          const { end, handle } = endingBehind(count, texts);
          const appending = used.append(driver === SQLITE ? user.handle : handle, [{ topic: "orders", body: 1 }]);
          if (count === 0) void end();
          const [{ status }] = await Promise.allSettled([appending] as const);
          // Behind the last of its statements it was whole, and shares the transaction's fate.
          await end();
          await user.query(last);
          const found = (await messages()) - before;
          if (used !== queue) await used.close();
          expect({ status, found }).toEqual({ status, found: last === "ROLLBACK" && status === "fulfilled" ? 1 : 0 });
        });
      }
    }
  }

  it("is refused in no transaction, and leaves the counter as it was", async () => {
    const counter = {
      name: "counter",
      text: "SELECT CAST(last_id AS CHAR(40)) AS n FROM message_topic_partition",
      params: [],
    };
    const before = [await messages(), (await session.run(counter)).rows];
    const appending = queue.append(user.handle, [{ topic: "orders", body: 1 }]);
    await expect(appending).rejects.toMatchObject({ code: "TRANSACTION_REQUIRED" });
    expect([await messages(), (await session.run(counter)).rows]).toEqual(before);
  });

  it.each(driver === SQLITE ? [0] : [2, 3, 4, 5])(
    "ends the one that waits behind it too, when ROLLBACK and BEGIN came behind statement %i",
    async (count) => {
      const before = await messages();
      await user.query("BEGIN");
      const { end, handle } = endingBehind(count, ["ROLLBACK", "BEGIN"]);
      const target = driver === SQLITE ? user.handle : handle;
      const both = [1, 2].map((body) => queue.append(target, [{ topic: "orders", body }]));
      await Promise.allSettled(both);
      await end();
      await user.query("COMMIT");
      expect((await messages()) - before).toBe(0);
    },
  );

  it("is there when the transaction stays open, also beside another one", async () => {
    const before = await messages();
    await user.query("BEGIN");
    await queue.append(user.handle, [{ topic: "orders", body: 1 }]);
    await queue.append(user.handle, [{ topic: "orders", body: 2 }]);
    await user.query("COMMIT");
    expect((await messages()) - before).toBe(2);
  });

  it("takes the next id each time, odd ones too, where the clock is behind the counter", async () => {
    const last = BigInt(Date.now() + 3_600_000 - Date.UTC(2020, 0, 1)) * 65_536n;
    await user.query(`UPDATE message_topic_partition SET last_id = ${last}`);
    const before = await messages();
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
    expect((await messages()) - before).toBe(3);
  });
}

describe("an append that nobody awaits", () => {
  const server = (name: DatabaseServiceName, driver: Driver) => defineCases(() => createTestDatabase(name), driver);
  describeWithService(["mariadb", "mysql9", "mysql8"], "by mysql2", ({ name }) => server(name, MYSQL2));
  describeWithService(["mariadb", "mysql9"], "by mariadb", ({ name }) => server(name, MARIADB));
  describeWithService("postgres", "by pg", ({ name }) => server(name, PG));
  describeWithService("postgres", "by pg before 8.18", ({ name }) => server(name, OLDER_PG));
  describe("on sqlite", () =>
    defineCases(async () => {
      const place = await sqlitePlace();
      return { url: place.address.url, drop: () => place.drop() };
    }, SQLITE));
});
