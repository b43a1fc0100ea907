/**
 * The whole story in one run: the shop takes orders and refuses some after their message was
 * written, a consumer reads the topic, the shop gets SIGTERM, and orders and messages are compared.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate } from "rowpost";
import { postgres } from "rowpost/postgres";
import { startConsumer } from "./consumer.ts";
import { DATABASE_URL, TOPIC } from "./settings.ts";

const ORDERS = 50;

/** Makes database and tables; in a deployment `npx rowpost-server migrate` makes rowpost's. */
async function prepare(): Promise<void> {
  const server = new URL(DATABASE_URL);
  const name = server.pathname.slice(1);
  server.pathname = "/postgres";
  const admin = new pg.Client({ connectionString: server.href });
  await admin.connect();
  const { rowCount } = await admin.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
  if (rowCount === 0) await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  await query(
    "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, customer text NOT NULL, amount integer NOT NULL)",
  );
  const database = postgres({ url: DATABASE_URL });
  await migrate(database, { layout: database.defaultLayout });
  await database.close();
}

async function query(text: string, values: unknown[] = []): Promise<{ id: string }[]> {
  const client = new pg.Client({ connectionString: DATABASE_URL });
  await client.connect();
  const { rows } = await client.query(text, values);
  await client.end();
  return rows;
}

const run = randomUUID().slice(0, 8);
const topic = `${TOPIC}_${run}`;
const arrived: string[] = [];
const arrivals = new EventEmitter();
await prepare();
const consumer = await startConsumer(topic, (id) => {
  arrived.push(id);
  arrivals.emit("order");
});

const service = fork(fileURLToPath(new URL("service.js", import.meta.url)), { env: { ...process.env, TOPIC: topic } });
service.once("exit", (code) => {
  if (code) process.exit(code); // it has said why
});
const [{ address }] = (await once(service, "message")) as [{ address: string }];
const placed: string[] = [];
const customers = new Map<string, string>();
for (let number = 1; number <= ORDERS; number += 1) {
  const order = { id: `${run}-${number}`, customer: `c${number % 7}`, amount: number % 5 === 0 ? 5000 : number };
  const headers = { "content-type": "application/json" };
  const { status } = await fetch(`${address}/orders`, { method: "POST", headers, body: JSON.stringify(order) });
  customers.set(order.id, order.customer);
  if (status === 201) placed.push(order.id);
}

const patience = AbortSignal.timeout(60_000);
while (!patience.aborted && placed.some((id) => !arrived.includes(id))) {
  await once(arrivals, "order", { signal: patience }).catch(() => undefined);
}
const exited = once(service, "exit");
service.kill("SIGTERM");
const [code] = await exited;
await consumer.finish();

/** The orders of each customer, as they follow each other in a list. */
const byCustomer = (ids: string[]): string =>
  JSON.stringify([...new Set(customers.values())].map((name) => ids.filter((id) => customers.get(id) === name)));

const orders = new Set((await query("SELECT id FROM orders WHERE id LIKE $1", [`${run}-%`])).map(({ id }) => id));
const lost = [...orders].filter((id) => !arrived.includes(id)).length;
const phantom = arrived.filter((id) => !orders.has(id)).length;
const isInOrder = byCustomer(arrived) === byCustomer(placed);
console.log(`committed=${orders.size} rolled_back=${ORDERS - placed.length} arrived=${arrived.length}`);
console.log(`lost=${lost} phantom=${phantom}`);
console.log(`in order for each customer: ${isInOrder}`);
const isComplete = lost + phantom === 0 && orders.size === placed.length && orders.size < ORDERS;
process.exitCode = isComplete && arrived.length === orders.size && isInOrder && code === 0 ? 0 : 1;
