/**
 * The whole story in one run: a shop with a message table of its own takes orders and refuses some
 * after their message was written, a webhook takes the messages, the shop gets SIGTERM, and orders
 * and messages are compared.
 */
import { fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { migrate } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { startConsumer } from "./consumer.js";
import { layout } from "./layout.js";

const ORDERS = 50;

const folder = await mkdtemp(join(tmpdir(), "rowpost-own-table-"));
const file = join(folder, "shop.sqlite");
const database = sqlite({ file });
const session = await database.connect({ purpose: "tool" });
const run = (text) => session.run({ name: "shop", text, params: [] });
for (const statement of (await readFile(new URL("shop.sql", import.meta.url), "utf8")).split(";")) {
  if (statement.trim() !== "") await run(statement);
}
await migrate(database, { layout }); // makes app_event_shard and its siblings; never touches app_event

const arrived = new Map();
const arrivals = new EventEmitter();
const consumer = await startConsumer((id) => {
  arrived.set(id, (arrived.get(id) ?? 0) + 1);
  arrivals.emit("order");
});

const env = { ...process.env, DATABASE_FILE: file, HOOK_URL: consumer.url };
const service = fork(fileURLToPath(new URL("service.js", import.meta.url)), { env });
service.once("exit", (code) => {
  if (code) process.exit(code); // it has said why
});
const [{ port }] = await once(service, "message");
const placed = [];
for (let number = 1; number <= ORDERS; number += 1) {
  const order = { id: String(number), amount: number % 5 === 0 ? 5000 : number };
  const { status } = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: JSON.stringify(order) });
  if (status === 201) placed.push(order.id);
}

const patience = AbortSignal.timeout(60_000);
while (!patience.aborted && placed.some((id) => !arrived.has(id))) {
  await once(arrivals, "order", { signal: patience }).catch(() => undefined);
}
const exited = once(service, "exit");
service.kill("SIGTERM");
const [code] = await exited;
await consumer.close();

const orders = new Set((await run("SELECT id FROM orders")).rows.map(({ id }) => id));
const states = (await run("SELECT status, COUNT(*) AS messages FROM app_event GROUP BY status")).rows;
await session.close();
await database.close();
await rm(folder, { recursive: true });

const lost = [...orders].filter((id) => !arrived.has(id)).length;
const phantom = [...arrived.keys()].filter((id) => !orders.has(id)).length;
console.log(`app_event: ${states.map(({ status, messages }) => `${String(messages)} ${String(status)}`).join(", ")}`);
console.log(`committed=${orders.size} rolled_back=${ORDERS - placed.length} arrived=${arrived.size}`);
console.log(`lost=${lost} phantom=${phantom}`);
const isGood = lost + phantom === 0 && orders.size === placed.length && orders.size < ORDERS && code === 0;
process.exitCode = isGood ? 0 : 1;
