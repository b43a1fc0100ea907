/**
 * The whole story in one run: a producer appends orders, two members of a consumer group write
 * bills, one of them is killed in the middle, and orders and bills are compared.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";

const ORDERS = 400;

const folder = await mkdtemp(join(tmpdir(), "rowpost-queue-"));
const file = join(folder, "shop.sqlite");
const database = sqlite({ file });
const session = await database.connect({ purpose: "tool" });
const run = async (text) => (await session.run({ name: "shop", text, params: [] })).rows;
await run(
  "CREATE TABLE bills (position INTEGER PRIMARY KEY AUTOINCREMENT, customer TEXT, number INTEGER, pid INTEGER)",
);
const queue = createQueue({ database });
await queue.migrate();
await queue.createTopic({ topic: "orders", partitions: 4 });

const start = (program) =>
  fork(fileURLToPath(new URL(program, import.meta.url)), { env: { ...process.env, DATABASE_FILE: file } });
/** Looks until something is so; after a minute it goes on, and the counts tell. */
async function until(isSo) {
  for (let look = 0; look < 1_200 && !(await isSo()); look += 1) await sleep(50);
}
const members = [start("consumer.js"), start("consumer.js")];
await until(async () => {
  const [billing] = await queue.groups({ topic: "orders" });
  return new Set(billing?.partitions.map(({ member }) => member?.owner).filter(Boolean)).size === members.length;
});

const producer = start("producer.js");
const [victim, survivor] = members;
const countBills = async (pid) => (await run(`SELECT 1 FROM bills WHERE pid = ${pid}`)).length;
await until(async () => (await countBills(victim.pid)) >= 20);
victim.kill("SIGKILL");
await once(victim, "exit");
const beforeKill = await countBills(victim.pid);
const appended = once(producer, "exit");
producer.send("go on");
await appended;
await until(async () => (await run("SELECT DISTINCT customer, number FROM bills")).length >= ORDERS);
const exited = once(survivor, "exit");
survivor.kill("SIGTERM");
const [code] = await exited;

const orders = new Set();
for await (const { key } of queue.tail({ topic: "orders", from: "start", limit: ORDERS })) orders.add(key);
const bills = await run("SELECT customer, number FROM bills ORDER BY position");
await session.close();
await queue.close();
await database.close();
await rm(folder, { recursive: true });

const billed = bills.map(({ customer, number }) => `${String(customer)}-${String(number)}`);
const lost = [...orders].filter((key) => !billed.includes(key)).length;
const phantom = billed.filter((key) => !orders.has(key)).length;
const last = new Map();
let reordered = 0;
for (const { customer, number } of bills) {
  if (Number(number) <= (last.get(customer) ?? 0)) reordered += 1;
  last.set(customer, Number(number));
}
console.log(`orders=${orders.size} bills=${bills.length}, of the killed member ${beforeKill}`);
console.log(`lost=${lost} phantom=${phantom}`);
console.log(`reordered=${reordered} for their customers`);
const isComplete = orders.size === ORDERS && bills.length === ORDERS && lost + phantom + reordered === 0;
process.exitCode = isComplete && beforeKill >= 20 && code === 0 ? 0 : 1;
