/** The shop as it would be deployed: orders over HTTP, and the relay into the queue. */
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import pg from "pg";
import { createOutbox, createRelay } from "rowpost";
import { postgres } from "rowpost/postgres";
import { createQueue, queueBroker } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const LIMIT = 1000;

const pool = new pg.Pool({ connectionString: DATABASE_URL });
const database = postgres({ pool });
const outbox = createOutbox({ database, createdBy: "shop" });
// The same database object: a message is appended and marked as sent in one transaction.
const queue = createQueue({ database, producerGroup: "shop" });
const relay = createRelay({ database, broker: queueBroker({ queue }) });

class OverLimitError extends Error {}

/** The order and the message about it: both, or neither. */
async function place(order) {
  await outbox.transaction(async (tx) => {
    await tx.query("INSERT INTO orders (id, customer, amount) VALUES ($1, $2, $3)", [
      order.id,
      order.customer,
      order.amount,
    ]);
    await outbox.enqueue(tx, {
      type: "order.created",
      key: order.id,
      topic: TOPIC,
      orderingKey: order.customer, // the messages of one customer stay in their order
      body: order,
    });
    // Whatever goes wrong after the enqueue takes the message back with the order.
    if (order.amount > LIMIT) throw new OverLimitError(`over the limit of ${LIMIT}`);
  });
}

async function answer(request, response) {
  if (!server.listening) response.setHeader("Connection", "close"); // or a busy client keeps it open
  try {
    await place(await json(request));
    response.writeHead(201).end();
  } catch (error) {
    response.writeHead(error instanceof OverLimitError ? 409 : 500).end(error.message);
  }
}

async function shutdown() {
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections();
  });
  await relay.stop(); // finishes what is in flight
  await queue.close();
  await database.close();
  await pool.end();
}

await relay.start();
const server = createServer((request, response) => void answer(request, response));
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const { port } = server.address();
  console.log(`the shop listens on http://127.0.0.1:${port}`);
  process.send?.({ port });
});
process.once("SIGTERM", () => void shutdown());
