/**
 * The shop's own table, and what the demo reads to judge itself: the tables are the truth, not the
 * demo's counters.
 */
import { type Database, type MessageType, messageType, type TableLayout } from "rowpost";
import { type DialectName, MESSAGE_STATES, type MessageState, type Session } from "rowpost/admin";

/** Type of the demo's messages. */
export const ORDER_TYPE = "demo.order.created";
/** An order that the consumer has not had by then is sent again: before the demo gives it up. */
const CONFIRMED_WITHIN_MS = 20_000;

/** What the shop sends. */
export interface Order {
  readonly orderNo: string;
  readonly customer: string | undefined;
  readonly article: string | undefined;
  readonly amountCents: number;
}

/** The shop's message type: the consumer confirms each order. */
export const orderCreated: MessageType<Order> = messageType<Order>(ORDER_TYPE, {
  topic: "orders",
  confirm: { withinMs: CONFIRMED_WITHIN_MS },
});

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

/** INSERT of what the consumer does with an order. Parameter: its number. */
export function insertEffect(dialect: DialectName): string {
  return `INSERT INTO demo_effect (order_no) VALUES (${dialect === "postgres" ? "$1" : "?"})`;
}

/** How many messages of this run are in which state. */
export type StateCounts = Readonly<Record<MessageState, number>>;

/** Reads on a connection of the demo's own, beside the shop and the relay. */
export interface DemoTables {
  /** Makes the shop's table and the consumer's where they are not there. */
  create(): Promise<void>;
  /** Numbers of the orders whose transactions committed. */
  committedOrders(): Promise<Set<string>>;
  /** How often each order took effect in the consumer's table. */
  effects(): Promise<Map<string, number>>;
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
      // Nothing in it forbids a second effect: that is what the inbox is for.
      await rows("demoCreateEffect", "CREATE TABLE IF NOT EXISTS demo_effect (order_no VARCHAR(64) NOT NULL)");
    },
    async committedOrders() {
      const found = await rows("demoOrders", `SELECT order_no AS order_no FROM demo_order WHERE ${ofRun("order_no")}`);
      return new Set(found.map((row) => String(row["order_no"])));
    },
    async effects() {
      const found = await rows(
        "demoEffects",
        `SELECT order_no AS order_no, COUNT(*) AS count FROM demo_effect WHERE ${ofRun("order_no")} GROUP BY order_no`,
      );
      return new Map(found.map((row) => [String(row["order_no"]), Number(row["count"])]));
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
