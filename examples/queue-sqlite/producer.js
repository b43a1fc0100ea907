/** Appends orders: half of them at once, the other half when it is told to go on. */
import { once } from "node:events";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";

const CUSTOMERS = 10;
const ORDERS_EACH = 40;

const database = sqlite({ file: process.env.DATABASE_FILE });
const queue = createQueue({ database, producerGroup: "shop" });

for (let number = 1; number <= ORDERS_EACH; number += 1) {
  if (number === ORDERS_EACH / 2) await once(process, "message");
  await queue.append(
    Array.from({ length: CUSTOMERS }, (_, customer) => ({
      topic: "orders",
      key: `c${customer}-${number}`,
      orderingKey: `c${customer}`, // the orders of one customer stay in their order
      body: { customer: `c${customer}`, number },
    })),
  );
}
await queue.close();
await database.close();
process.disconnect();
