/** A shop whose tables do not add up: orders, their messages, and what a consumer has handled. */
import { type Finding, type ReconcileOptions, type ReconcileReport, reconcile } from "../../src/admin/index.ts";
import type { Database, DialectName } from "../../src/databases/database.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { migrate, type TableLayout } from "../../src/index.ts";
import type { QueuePlace } from "../queue/places.ts";

const MINUTE_MS = 60_000;

/** So many minutes ago, in the words of the database's UTC clock. */
const AGO: Readonly<Record<DialectName, (minutes: number) => string>> = {
  mysql: (minutes) => `UTC_TIMESTAMP(3) - INTERVAL ${minutes} MINUTE`,
  postgres: (minutes) => `now() - ${minutes} * interval '1 minute'`,
  sqlite: (minutes) => `strftime('%Y-%m-%d %H:%M:%f', 'now', '${-minutes} minutes')`,
};

/** Each order in the window that is paid. */
export const PAID = "SELECT order_no AS message_key FROM orders WHERE paid_at >= :from AND paid_at < :to";

export interface Written {
  readonly key: string;
  readonly ago?: number;
  readonly type?: string;
  readonly state?: number;
  /** SQL. */
  readonly receipt?: string;
  /** SQL. */
  readonly nextRetryAt?: string;
  readonly table?: string;
}

export interface Shop {
  readonly database: Database;
  readonly query: QueuePlace["query"];
  ago(minutes: number): string;
  order(key: string, ago?: number): Promise<void>;
  message(written: Written): Promise<void>;
  handled(
    key: string,
    options?: { readonly type?: string; readonly ago?: number; readonly consumer?: string },
  ): Promise<void>;
  /** Of the last four hours, but for the last ten minutes. */
  reconcile(
    options?: Partial<ReconcileOptions>,
  ): Promise<{ readonly found: readonly string[]; readonly all: readonly Finding[]; readonly report: ReconcileReport }>;
}

/** With an order of three hours ago whose message is sent, so that it is known what was kept. */
export async function openShop(place: QueuePlace, layout?: TableLayout): Promise<Shop> {
  const database = place.open();
  const { dialect } = database;
  const query: Shop["query"] = (text) => place.query(text);
  const ago = AGO[dialect];
  await migrate(database, { layout: layout ?? database.defaultLayout });
  await createInbox({ database }).migrate();
  const instant = { mysql: "DATETIME(3)", postgres: "timestamptz", sqlite: "TEXT" }[dialect];
  await query(`CREATE TABLE orders (order_no VARCHAR(64) NOT NULL PRIMARY KEY, paid_at ${instant} NOT NULL)`);
  await query("CREATE TABLE points (order_no VARCHAR(64) NOT NULL)");
  const shop: Shop = {
    database,
    query,
    ago,
    async order(key, minutes = 30) {
      await query(`INSERT INTO orders VALUES ('${key}', ${ago(minutes)})`);
    },
    async message({
      ago: minutes = 30,
      key,
      nextRetryAt = "NULL",
      receipt = "'r1'",
      state = 2,
      table = "local_message",
      type = "order.paid",
    }) {
      const columns =
        "message_type, message_key, topic, message_body, state, message_id, next_retry_at, gmt_create, gmt_modified";
      const archived = table === "local_message" ? ["", ""] : [", id, archived_at", `, 1, ${ago(1)}`];
      await query(`INSERT INTO ${table} (${columns}${archived[0]})
        VALUES ('${type}', '${key}', 'orders', '{}', ${state}, ${receipt}, ${nextRetryAt}, ${ago(minutes)}, ${ago(minutes)}${archived[1]})`);
    },
    async handled(key, { ago: minutes = 30, consumer = "points", type = "order.paid" } = {}) {
      await query(`INSERT INTO message_inbox (consumer, message_type, message_key, message_id, handled_by, handled_at)
        VALUES ('${consumer}', '${type}', '${key}', 'b-${key}', 'host-1', ${ago(minutes)})`);
    },
    async reconcile(options = {}) {
      const all: Finding[] = [];
      const to = new Date(Date.now() - 10 * MINUTE_MS);
      const report = await reconcile({
        database,
        types: ["order.paid"],
        businessQuery: PAID,
        to,
        from: new Date(to.getTime() - 240 * MINUTE_MS),
        ...options,
        onFinding: (finding) => void all.push(finding),
      });
      return { all, report, found: all.map(({ key, kind }) => `${kind} ${key}`) };
    },
  };
  await shop.order("first", 200);
  await shop.message({ key: "first", ago: 200 });
  return shop;
}
