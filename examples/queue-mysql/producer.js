/**
 * Writes orders, each with its message in one transaction and one in ten rolled back: half of them
 * at once, the other half when it is told to go on.
 */
import { once } from "node:events";
import { createPool } from "mysql2/promise";
import { mysql } from "rowpost/mysql";
import { createQueue } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const CUSTOMERS = 10;
const ORDERS_EACH = 40;

const pool = createPool(DATABASE_URL);
const database = mysql({ pool });
const queue = createQueue({ database, producerGroup: "shop" });

async function place(customer, number) {
  const key = `${customer}-${number}`;
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    await connection.query("INSERT INTO orders (topic, id) VALUES (?, ?)", [TOPIC, key]);
    // Last: other appends to the partition wait until this transaction ends.
    await queue.append(connection, [{ topic: TOPIC, key, orderingKey: customer, body: { customer, number } }]);
    await (number % 10 === 0 ? connection.rollback() : connection.commit());
  } finally {
    connection.release();
  }
  queue.wake(); // consumers of this process need not wait for their next poll
}

for (let number = 1; number <= ORDERS_EACH; number += 1) {
  if (number === ORDERS_EACH / 2) await once(process, "message");
  await Promise.all(Array.from({ length: CUSTOMERS }, (_, customer) => place(`c${customer}`, number)));
}
await queue.close();
await database.close();
await pool.end();
process.disconnect();
