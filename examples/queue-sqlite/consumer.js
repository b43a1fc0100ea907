/** A member of the group `billing`: each order becomes a bill, once, whatever is killed. */
import { setTimeout as sleep } from "node:timers/promises";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";

const database = sqlite({ file: process.env.DATABASE_FILE });
const queue = createQueue({ database });
const consumer = await queue.consume({
  topic: "orders",
  group: "billing",
  transactional: true, // the bill, the record and the progress: one commit
  async handler(message, { tx }) {
    const { customer, number } = message.body;
    await tx.query("INSERT INTO bills (customer, number, pid) VALUES (?, ?, ?)", [customer, number, process.pid]);
    await sleep(2); // some work
  },
});

async function shutdown() {
  await consumer.stop(); // finishes what is in flight, gives its partitions back
  await queue.close();
  await database.close();
}
process.once("SIGTERM", () => void shutdown());
