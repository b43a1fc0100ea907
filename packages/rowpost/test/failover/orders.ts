/**
 * Orders of three customers, each in one transaction with its message; every fifth is rolled back.
 * And the judgment about what a broker got of them.
 */
import { expect } from "vitest";
import type { Database, TableLayout } from "../../src/databases/database.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";

const CUSTOMERS = ["ada", "bob", "eve"];
const undo = new Error("the order is not to be");

export interface Shop {
  /** Orders whose COMMIT was answered. */
  readonly committed: readonly string[];
  /** Places so many orders of each customer, one after the other. */
  place(count: number): Promise<void>;
  /** Goes on placing orders, whatever happens. Call the result to end it. */
  open(): () => Promise<void>;
  /** Resolves when so many more have been committed. */
  more(count: number): Promise<void>;
}

/** Makes the tables. */
export async function makeTables(database: Database, layout: TableLayout = database.defaultLayout): Promise<void> {
  await migrate(database, { layout });
  await rows(database, "CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY)");
}

/**
 * `branch` makes its orders others than those of another shop; its customers are the same. With a
 * layout, in a table that may have no ordering keys: none has one.
 */
export function createShop(database: Database, branch = "", layout?: TableLayout): Shop {
  const outbox = createOutbox({ database, layout: layout ?? database.defaultLayout });
  const isOrdered = layout === undefined;
  const committed: string[] = [];
  const waiting = new Set<() => void>();
  const numbers = new Map(CUSTOMERS.map((customer) => [customer, 0]));

  async function placeOne(customer: string): Promise<void> {
    const number = (numbers.get(customer) ?? 0) + 1;
    numbers.set(customer, number);
    const key = `${customer}${branch}-${number}`;
    const isUndone = number % 5 === 0;
    try {
      await outbox.transaction(async (tx) => {
        await tx.query(`INSERT INTO orders (id) VALUES ('${key}')`);
        await outbox.enqueue(tx, {
          type: "order",
          key,
          topic: "orders",
          body: { key },
          ...(isOrdered ? { orderingKey: customer } : {}),
        });
        if (isUndone) throw undo;
      });
    } catch (error) {
      if (error === undo) return;
      throw error;
    }
    committed.push(key);
    for (const look of waiting) look();
  }

  return {
    committed,
    async place(count) {
      await Promise.all(
        CUSTOMERS.map(async (customer) => {
          for (let left = count; left > 0; left -= 1) await placeOne(customer);
        }),
      );
    },
    open() {
      let isOpen = true;
      const going = CUSTOMERS.map(async (customer) => {
        // Refused, or without an answer: the customer orders something else.
        while (isOpen) await placeOne(customer).catch(() => new Promise((resolve) => setTimeout(resolve, 10)));
      });
      return async () => {
        isOpen = false;
        await Promise.all(going);
      };
    },
    more(count) {
      const until = committed.length + count;
      return new Promise((resolve) => {
        const look = (): void => {
          if (committed.length < until) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      });
    },
  };
}

/** What `judge` is told. */
export interface Evidence {
  /** Keys in the order in which the broker got them. */
  readonly delivered: readonly string[];
  /** The server that is the primary in the end. */
  readonly on: Database;
  /** Of branches with this in their name; default: of all. */
  readonly of?: string;
  /** Orders that were committed where nobody has them now. */
  readonly gone?: readonly string[];
  /** False: the table has no ordering keys. */
  readonly isOrdered?: boolean;
}

/** Lost 0, phantom 0, reordered 0. Returns how many copies there were. */
export async function judge({ delivered, on, of = "", gone = [], isOrdered = true }: Evidence): Promise<number> {
  const all = (await rows(on, "SELECT id FROM orders")).map(({ id }) => String(id));
  const there = all.filter((key) => key.includes(of));
  const first = [...new Set(delivered)];
  const known = new Set([...there, ...gone]);
  const sent = new Set(first);
  expect({
    lost: there.filter((key) => !sent.has(key)),
    phantom: first.filter((key) => !known.has(key)),
    reordered: (isOrdered ? [...new Set(first.map(customerOf))] : []).flatMap((customer) => {
      const numbers = first.filter((key) => customerOf(key) === customer).map((key) => Number(key.split("-")[1]));
      return numbers.filter((number, at) => number < (numbers[at - 1] ?? 0)).map((number) => `${customer}-${number}`);
    }),
  }).toEqual({ lost: [], phantom: [], reordered: [] });
  return delivered.length - first.length;
}

function customerOf(key: string): string {
  return key.split("-")[0] ?? "";
}

/** Runs one statement on a session of its own. */
export async function rows(database: Database, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const session = await database.connect({ purpose: "tool" });
  try {
    return (await session.run({ name: "test", text, params: [] })).rows;
  } finally {
    await session.close();
  }
}

/** Number of messages that a relay has still to deal with. */
export async function unfinished(database: Database, layout: TableLayout = database.defaultLayout): Promise<number> {
  const { columns, states, table } = layout;
  const open = `'${states.pending}', '${states.sending}'`;
  const found = await rows(database, `SELECT COUNT(*) AS n FROM ${table} WHERE ${columns.state} IN (${open})`);
  return Number(found[0]?.["n"]);
}
