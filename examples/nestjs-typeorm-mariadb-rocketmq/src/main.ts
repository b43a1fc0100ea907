/**
 * The whole story in one run: the shop takes orders and refuses some after their message was
 * written, a consumer reads the topic, the shop gets SIGTERM, and orders and messages are compared.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { migrate } from "rowpost";
import { mysql } from "rowpost/mysql";
import { startConsumer } from "./consumer";
import { DATABASE_URL } from "./settings";

const ORDERS = 50;

/** Makes the database and rowpost's tables; in a deployment `npx rowpost-server migrate` does. */
async function prepare(): Promise<void> {
  const server = new URL(DATABASE_URL);
  const name = server.pathname.slice(1);
  server.pathname = "/";
  const connection = await createConnection(server.href);
  await connection.query(`CREATE DATABASE IF NOT EXISTS ${name}`);
  await connection.end();
  const database = mysql({ url: DATABASE_URL });
  await migrate(database, { layout: database.defaultLayout });
  await database.close();
}

async function query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const connection = await createConnection(DATABASE_URL);
  const [rows] = await connection.query(text, values);
  await connection.end();
  return rows as Record<string, unknown>[];
}

/** What relays hold. One that was not stopped leaves its shards behind. */
const ownedShards = async (): Promise<number> =>
  (await query("SELECT shard FROM local_message_shard WHERE owner IS NOT NULL")).length;

async function main(): Promise<void> {
  const run = randomUUID().slice(0, 8);
  const arrived = new Map<string, number>();
  const arrivals = new EventEmitter();
  await prepare();
  const consumer = await startConsumer((id) => {
    if (!id.startsWith(`${run}-`)) return; // left over from an earlier run
    arrived.set(id, (arrived.get(id) ?? 0) + 1);
    arrivals.emit("order");
  });

  const service = fork(join(__dirname, "service.js"));
  service.once("exit", (code) => {
    if (code) process.exit(code); // it has said why
  });
  const [{ port }] = (await once(service, "message")) as [{ port: number }];
  const placed: string[] = [];
  for (let number = 1; number <= ORDERS; number += 1) {
    const order = { id: `${run}-${number}`, amount: number % 5 === 0 ? 5000 : number };
    const headers = { "content-type": "application/json" };
    const { status } = await fetch(`http://127.0.0.1:${port}/orders`, {
      method: "POST",
      headers,
      body: JSON.stringify(order),
    });
    if (status === 201) placed.push(order.id);
  }

  const patience = AbortSignal.timeout(60_000);
  while (!patience.aborted && placed.some((id) => !arrived.has(id))) {
    await once(arrivals, "order", { signal: patience }).catch(() => undefined);
  }
  const ownedBefore = await ownedShards();
  const exited = once(service, "exit");
  service.kill("SIGTERM");
  const [, signal] = await exited; // Nest ends itself with the signal, once every hook has run
  const ownedAfter = await ownedShards();
  await consumer.finish();

  const placedRows = await query("SELECT id FROM orders WHERE id LIKE ?", [`${run}-%`]);
  const orders = new Set(placedRows.map(({ id }) => String(id)));
  const lost = [...orders].filter((id) => !arrived.has(id)).length;
  const phantom = [...arrived.keys()].filter((id) => !orders.has(id)).length;
  console.log(`committed=${orders.size} rolled_back=${ORDERS - placed.length} arrived=${arrived.size}`);
  console.log(`lost=${lost} phantom=${phantom}`);
  console.log(`shards of the relay: ${ownedBefore} while it ran, ${ownedAfter} after its stop`);
  const isComplete = lost + phantom === 0 && orders.size === placed.length && orders.size < ORDERS;
  process.exitCode = isComplete && signal === "SIGTERM" && ownedBefore > 0 && ownedAfter === 0 ? 0 : 1;
}

void main();
