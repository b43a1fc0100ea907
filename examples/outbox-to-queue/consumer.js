/** Another service: each order becomes a bill, once. */
import { postgres } from "rowpost/postgres";
import { createQueue } from "rowpost/queue";
import { DATABASE_URL, TOPIC } from "./settings.js";

const database = postgres({ url: DATABASE_URL });
const queue = createQueue({ database });
const consumer = await queue.consume({
  topic: TOPIC,
  group: "billing",
  transactional: true, // the bill, the record and the progress: one commit
  async handler({ key, body }, { tx }) {
    await tx.query("INSERT INTO bills (order_id, customer, amount) VALUES ($1, $2, $3)", [
      key,
      body.customer,
      body.amount,
    ]);
  },
});

async function shutdown() {
  await consumer.stop(); // finishes what is in flight, gives its partitions back
  await queue.close();
  await database.close();
}
process.once("SIGTERM", () => void shutdown());
