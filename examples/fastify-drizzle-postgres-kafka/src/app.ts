import { drizzle } from "drizzle-orm/node-postgres";
import Fastify, { type FastifyInstance } from "fastify";
import pg from "pg";
import { createOutbox, createRelay } from "rowpost";
import { kafka } from "rowpost/kafka";
import { postgres } from "rowpost/postgres";
import { type Order, orders } from "./schema.ts";
import { DATABASE_URL, KAFKA_BROKERS, TOPIC } from "./settings.ts";

const LIMIT = 1000;

class OverLimitError extends Error {
  readonly statusCode = 409;
}

export function createApp(): FastifyInstance {
  const pool = new pg.Pool({ connectionString: DATABASE_URL });
  const db = drizzle(pool);
  const database = postgres({ pool });
  const outbox = createOutbox({ database, createdBy: "shop" });
  const relay = createRelay({ database, broker: kafka({ brokers: KAFKA_BROKERS }) });

  /** The order and the message about it: both, or neither. */
  async function place(order: Order): Promise<void> {
    await db.transaction(async (tx) => {
      await tx.insert(orders).values(order);
      await outbox.enqueue(tx, {
        type: "order.created",
        key: order.id,
        topic: TOPIC,
        orderingKey: order.customer, // the messages of one customer arrive in their order
        body: order,
      });
      // Whatever goes wrong after the enqueue takes the message back with the order.
      if (order.amount > LIMIT) throw new OverLimitError(`over the limit of ${LIMIT}`);
    });
    outbox.wake(); // the relay of this process need not wait for its next poll
  }

  const app = Fastify();
  app.post<{ Body: Order }>("/orders", async (request, reply) => {
    await place(request.body);
    return reply.code(201).send(request.body);
  });
  app.addHook("onSend", async (_request, reply) => {
    if (!app.server.listening) reply.header("connection", "close"); // or an idle client keeps it open for a minute
  });
  app.addHook("onReady", () => relay.start()); // a relay that cannot work keeps the service from starting
  app.addHook("onClose", async () => {
    await relay.stop(); // finishes what is in flight, closes the broker
    await database.close();
    await pool.end();
  });
  return app;
}
