import { PrismaPg } from "@prisma/adapter-pg";
import express, { type ErrorRequestHandler, type Express } from "express";
import { createOutbox, createRelay } from "rowpost";
import { postgres } from "rowpost/postgres";
import { rabbitmq } from "rowpost/rabbitmq";
import { type Order, PrismaClient } from "./generated/client.js";
import { DATABASE_URL, RABBITMQ_URL, TOPIC } from "./settings.ts";

const LIMIT = 1000;

class OverLimitError extends Error {}

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: DATABASE_URL }) });
const database = postgres({ url: DATABASE_URL });
const outbox = createOutbox({ database, createdBy: "shop" });
const relay = createRelay({ database, broker: rabbitmq({ url: RABBITMQ_URL }) });

/** The order and the message about it: both, or neither. */
async function place(order: Order): Promise<void> {
  await prisma.$transaction(async (tx) => {
    await tx.order.create({ data: order });
    await outbox.enqueue(tx, { type: "order.created", key: order.id, topic: TOPIC, body: order });
    // Whatever goes wrong after the enqueue takes the message back with the order.
    if (order.amount > LIMIT) throw new OverLimitError(`over the limit of ${LIMIT}`);
  });
  outbox.wake(); // the relay of this process need not wait for its next poll
}

const refuse: ErrorRequestHandler = (error, _request, response, next) => {
  if (error instanceof OverLimitError) response.status(409).json({ error: error.message });
  else next(error);
};

/** Starts the relay; one that cannot work keeps the service from starting. */
export async function startApp(isStopping: () => boolean): Promise<Express> {
  await relay.start();
  const app = express();
  app.use((_request, response, next) => {
    if (isStopping()) response.set("Connection", "close"); // or a busy client keeps it open
    next();
  });
  app.post("/orders", express.json(), async (request, response) => {
    await place(request.body);
    response.status(201).json(request.body);
  });
  app.use(refuse);
  return app;
}

/** After the HTTP server has closed. */
export async function stopApp(): Promise<void> {
  await relay.stop(); // finishes what is in flight, closes the broker
  await database.close();
  await prisma.$disconnect();
}
