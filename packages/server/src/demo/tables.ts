/**
 * The shop's table, and the queries by which the demo judges itself: by the tables, not by
 * counters.
 */
import { type Database, type MessageType, messageType, type TableLayout } from "rowpost";
import { type DialectName, MESSAGE_STATES, type MessageState, type Session } from "rowpost/admin";

export const ORDER_TYPE = "demo.order.created";
/** An order not consumed by then is sent again, before the demo gives it up. */
const CONFIRMED_WITHIN_MS = 20_000;

export interface Order {
  readonly orderNo: string;
  readonly customer: string | undefined;
  readonly article: string | undefined;
  readonly amountCents: number;
}

export const orderCreated: MessageType<Order> = messageType<Order>(ORDER_TYPE, {
  topic: "orders",
  confirm: { withinMs: CONFIRMED_WITHIN_MS },
});

/** Prefix of a run's order numbers, so that it counts only its own orders. */
export function orderNumber(run: string, index: number): string {
  return `${run}-${String(index).padStart(6, "0")}`;
}

export function isOfRun(run: string, orderNo: string): boolean {
  return orderNo.startsWith(`${run}-`);
}

export function insertOrder(dialect: DialectName): string {
  const values = dialect === "postgres" ? "$1, $2, $3" : "?, ?, ?";
  return `INSERT INTO demo_order (order_no, customer, amount_cents) VALUES (${values})`;
}

export function insertEffect(dialect: DialectName): string {
  return `INSERT INTO demo_effect (order_no) VALUES (${dialect === "postgres" ? "$1" : "?"})`;
}

export type StateCounts = Readonly<Record<MessageState, number>>;

export interface DemoTables {
  create(): Promise<void>;
  committedOrders(): Promise<Set<string>>;
  effects(): Promise<Map<string, number>>;
  hasOrder(orderNo: string): Promise<boolean>;
  messageStates(): Promise<StateCounts>;
  close(): Promise<void>;
}

/** Connects at the first use and reconnects after a loss. `run` has only letters and digits. */
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
      // No unique key forbids a second effect: that is up to the inbox.
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
