/** The shop as it would be deployed: orders over HTTP, and the relay inside. */
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { createOutbox, createRelay } from "rowpost";
import { http } from "rowpost/http";
import { sqlite } from "rowpost/sqlite";
import { layout } from "./layout.js";

const LIMIT = 1000;

const database = sqlite({ file: process.env.DATABASE_FILE });
const outbox = createOutbox({ database, layout });
const relay = createRelay({ database, layout, broker: http({ url: process.env.HOOK_URL }) });

class OverLimitError extends Error {}

/** The order and the message about it: both, or neither. */
async function place(order) {
  await outbox.transaction(async (tx) => {
    await tx.query("INSERT INTO orders (id, amount) VALUES (?, ?)", [order.id, order.amount]);
    await outbox.enqueue(tx, { type: "order.created", key: order.id, topic: "orders", body: order });
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
  await relay.stop(); // finishes what is in flight, closes the broker
  await database.close();
}

await relay.start(); // rejects what no waiting mends, such as a column that the table lacks
const server = createServer((request, response) => void answer(request, response));
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const { port } = server.address();
  console.log(`the shop listens on http://127.0.0.1:${port}`);
  process.send?.({ port });
});
process.once("SIGTERM", () => void shutdown());
