/**
 * A member of the group `billing`. Its bills are elsewhere, so a message may come again after a
 * crash: the id of the message keeps the second bill away.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createPool } from "mysql2/promise";
import { mysql } from "rowpost/mysql";
import { createQueue } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const bills = createPool(DATABASE_URL); // it could be another server
const database = mysql({ url: DATABASE_URL });
const queue = createQueue({ database });
const consumer = await queue.consume({
  topic: TOPIC,
  group: "billing",
  async handler({ id, body: { customer, number } }) {
    await bills.query(
      `INSERT INTO bills (topic, message_id, customer, number, pid) VALUES (?, ?, ?, ?, ?)
       ON DUPLICATE KEY UPDATE times = times + 1`,
      [TOPIC, id, customer, number, process.pid],
    );
    await sleep(5); // some work
  },
});

async function shutdown() {
  await consumer.stop(); // finishes what is in flight, gives its partitions back
  await queue.close();
  await database.close();
  await bills.end();
}
process.once("SIGTERM", () => void shutdown());
