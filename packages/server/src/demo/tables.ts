/**
 * The shop's own table, and what the demo reads to judge itself: the tables are the truth, not the
 * demo's counters.
 */
import type { Database, DialectName, MessageState, Session, TableLayout } from "rowpost";
import { MESSAGE_STATES } from "rowpost";

/** Type of the demo's messages. */
export const ORDER_TYPE = "demo.order.created";

/**
 * Order numbers of one run begin with this, so that a run on a database of earlier runs counts its
 * own orders only.
 */
export function orderNumber(run: string, index: number): string {
  return `${run}-${String(index).padStart(6, "0")}`;
}

/** Whether an order number is one of this run. */
export function isOfRun(run: string, orderNo: string): boolean {
  return orderNo.startsWith(`${run}-`);
}

/** INSERT of one order. Parameters: number, customer, amount in cents. */
export function insertOrder(dialect: DialectName): string {
  const values = dialect === "postgres" ? "$1, $2, $3" : "?, ?, ?";
  return `INSERT INTO demo_order (order_no, customer, amount_cents) VALUES (${values})`;
}

/** How many messages of this run are in which state. */
export type StateCounts = Readonly<Record<MessageState, number>>;

/** Reads on a connection of the demo's own, beside the shop and the relay. */
export interface DemoTables {
  /** Makes the shop's table where it is not there. */
  create(): Promise<void>;
  /** Numbers of the orders whose transactions committed. */
  committedOrders(): Promise<Set<string>>;
  hasOrder(orderNo: string): Promise<boolean>;
  messageStates(): Promise<StateCounts>;
  close(): Promise<void>;
}

/**
 * Opens nothing before the first use; a connection that was lost is made anew. `run` is made of
 * letters and digits.
 */
export function createDemoTables(database: Database, layout: TableLayout, run: string): DemoTables {
  let session: Promise<Session> | undefined;

  async function rows(name: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const known = await session?.catch(() => undefined);
    if (known === undefined || known.dead) session = database.connect({ purpose: "tool" });
    const open = await session;
    return open === undefined ? [] : (await open.run({ name, text, params: [] })).rows;
  }

  // A range of the key, which its index serves; `.` is the character after `-`.
  const ofRun = (column: string): string => `${column} >= '${run}-' AND ${column} < '${run}.'`;
  const { columns, states, table } = layout;

  return {
    async create() {
      await rows(
        "demoCreate",
        `CREATE TABLE IF NOT EXISTS demo_order (
  order_no VARCHAR(64) NOT NULL PRIMARY KEY,
  customer VARCHAR(64) NOT NULL,
  amount_cents INTEGER NOT NULL
)`,
      );
    },
    async committedOrders() {
      const found = await rows("demoOrders", `SELECT order_no AS order_no FROM demo_order WHERE ${ofRun("order_no")}`);
      return new Set(found.map((row) => String(row["order_no"])));
    },
    async hasOrder(orderNo) {
      return (await rows("demoOrder", `SELECT 1 AS found FROM demo_order WHERE order_no = '${orderNo}'`)).length > 0;
    },
    async messageStates() {
      const found = await rows(
        "demoStates",
        `SELECT ${columns.state} AS state, COUNT(*) AS count FROM ${table}
WHERE ${columns.messageType} = '${ORDER_TYPE}' AND ${ofRun(columns.messageKey)} GROUP BY ${columns.state}`,
      );
      const counts = { pending: 0, sending: 0, sent: 0, failed: 0, consumed: 0, suspended: 0 };
      for (const row of found) {
        const state = MESSAGE_STATES.find((each) => String(states[each]) === String(row["state"]));
        if (state !== undefined) counts[state] += Number(row["count"]);
      }
      return counts;
    },
    async close() {
      const open = await session?.catch(() => undefined);
      await open?.close();
    },
  };
}
