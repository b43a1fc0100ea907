/**
 * The whole story in one run: the shop takes orders and refuses some after their message was
 * written, a consumer writes bills, both get SIGTERM, and orders and bills are compared.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate } from "rowpost";
import { postgres } from "rowpost/postgres";
import { createQueue } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const ORDERS = 50;

async function query(url, text, values = []) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(text, values);
  await client.end();
  return rows;
}

/** Makes database and tables. */
const server = new URL(DATABASE_URL);
const name = server.pathname.slice(1);
server.pathname = "/postgres";
const found = await query(server.href, "SELECT 1 FROM pg_database WHERE datname = $1", [name]);
if (found.length === 0) await query(server.href, `CREATE DATABASE ${name}`);
await query(
  DATABASE_URL,
  `CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, customer text NOT NULL, amount integer NOT NULL);
   CREATE TABLE IF NOT EXISTS bills (position bigserial PRIMARY KEY, order_id text, customer text, amount integer)`,
);
const database = postgres({ url: DATABASE_URL });
await migrate(database, { layout: database.defaultLayout });
const queue = createQueue({ database });
await queue.migrate();
await queue.createTopic({ topic: TOPIC, partitions: 4 });

const start = (program) => fork(fileURLToPath(new URL(program, import.meta.url)), { env: { ...process.env, TOPIC } });
const consumer = start("consumer.js");
const service = start("service.js");
service.once("exit", (code) => {
  if (code) process.exit(code); // it has said why
});
const [{ port }] = await once(service, "message");

const run = randomUUID().slice(0, 8);
const placed = [];
for (let number = 1; number <= ORDERS; number += 1) {
  const order = { id: `${run}-${number}`, customer: `c${number % 7}`, amount: number % 5 === 0 ? 5000 : number };
  const { status } = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: JSON.stringify(order) });
  if (status === 201) placed.push(order);
}

const rowsOf = (text) => query(DATABASE_URL, text, [`${run}-%`]);
const billsOf = () => rowsOf("SELECT order_id, customer, amount FROM bills WHERE order_id LIKE $1 ORDER BY position");
for (let look = 0; look < 600 && (await billsOf()).length < placed.length; look += 1) await sleep(100);
const codes = [];
for (const child of [service, consumer]) {
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  codes.push((await exited)[0]);
}

const orders = (await rowsOf("SELECT id FROM orders WHERE id LIKE $1")).map(({ id }) => id);
const bills = await billsOf();
await queue.deleteTopic(TOPIC);
await queue.close();
await database.close();

const billed = bills.map((bill) => bill.order_id);
const lost = orders.filter((id) => !billed.includes(id)).length;
const phantom = billed.filter((id) => !orders.includes(id)).length;
const last = new Map();
let reordered = 0;
for (const { customer, amount } of bills) {
  if (amount <= (last.get(customer) ?? 0)) reordered += 1; // the amounts of this run's orders grow
  last.set(customer, amount);
}
console.log(`committed=${orders.length} rolled_back=${ORDERS - placed.length} bills=${bills.length}`);
console.log(`lost=${lost} phantom=${phantom}`);
console.log(`reordered=${reordered} for their customers`);
const isComplete = lost + phantom + reordered === 0 && orders.length === placed.length && orders.length < ORDERS;
process.exitCode = isComplete && bills.length === orders.length && codes.join() === "0,0" ? 0 : 1;
