/**
 * The whole story in one run: a producer writes orders and takes some back, two members of a
 * consumer group write bills, one of them is killed in the middle, and orders and bills are
 * compared.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createConnection } from "mysql2/promise";
import { mysql } from "rowpost/mysql";
import { createQueue } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const ORDERS = 360;

const server = new URL(DATABASE_URL);
const name = server.pathname.slice(1);
server.pathname = "/";
const connection = await createConnection(server.href);
await connection.query(`CREATE DATABASE IF NOT EXISTS ${name}`);
await connection.query(`USE ${name}`);
await connection.query(
  "CREATE TABLE IF NOT EXISTS orders (topic VARCHAR(31), id VARCHAR(64), PRIMARY KEY (topic, id))",
);
await connection.query(`CREATE TABLE IF NOT EXISTS bills (position INT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(31),
  message_id BIGINT, customer VARCHAR(64), number INT, pid INT, times INT DEFAULT 1, UNIQUE KEY (topic, message_id))`);
const rowsOf = async (text) => (await connection.query(text, [TOPIC]))[0];

const database = mysql({ url: DATABASE_URL });
const queue = createQueue({ database });
await queue.migrate();
await queue.createTopic({ topic: TOPIC, partitions: 4 });

const start = (program) => fork(fileURLToPath(new URL(program, import.meta.url)), { env: { ...process.env, TOPIC } });
/** Looks until something is so; after a minute it goes on, and the counts tell. */
async function until(isSo) {
  for (let look = 0; look < 1_200 && !(await isSo()); look += 1) await sleep(50);
}
const members = [start("consumer.js"), start("consumer.js")];
await until(async () => {
  const [billing] = await queue.groups({ topic: TOPIC });
  return new Set(billing?.partitions.map(({ member }) => member?.owner).filter(Boolean)).size === members.length;
});

const producer = start("producer.js");
const [victim, survivor] = members;
const billsOf = async (pid) => (await rowsOf("SELECT pid FROM bills WHERE topic = ?")).filter((row) => row.pid === pid);
await until(async () => (await billsOf(victim.pid)).length >= 20);
victim.kill("SIGKILL");
await once(victim, "exit");
const beforeKill = (await billsOf(victim.pid)).length;
const appended = once(producer, "exit");
producer.send("go on");
await appended;
await until(async () => (await rowsOf("SELECT 1 FROM bills WHERE topic = ?")).length >= ORDERS);
const exited = once(survivor, "exit");
survivor.kill("SIGTERM");
const [code] = await exited;

const orders = new Set((await rowsOf("SELECT id FROM orders WHERE topic = ?")).map(({ id }) => id));
const bills = await rowsOf("SELECT customer, number, times FROM bills WHERE topic = ? ORDER BY position");
await queue.deleteTopic(TOPIC);
await queue.close();
await database.close();
await connection.end();

const billed = bills.map(({ customer, number }) => `${customer}-${number}`);
const lost = [...orders].filter((key) => !billed.includes(key)).length;
const phantom = billed.filter((key) => !orders.has(key)).length;
const again = bills.reduce((sum, { times }) => sum + times - 1, 0);
const last = new Map();
let reordered = 0;
for (const { customer, number } of bills) {
  if (number <= (last.get(customer) ?? 0)) reordered += 1;
  last.set(customer, number);
}
console.log(`orders=${orders.size} bills=${bills.length}, of the killed member ${beforeKill}; came again: ${again}`);
console.log(`lost=${lost} phantom=${phantom}`);
console.log(`reordered=${reordered} for their customers`);
const isComplete = orders.size === ORDERS && bills.length === ORDERS && lost + phantom + reordered === 0;
process.exitCode = isComplete && beforeKill >= 20 && code === 0 ? 0 : 1;
