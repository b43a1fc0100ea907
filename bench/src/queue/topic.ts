import { createQueue, type Queue, type QueueMessage } from "rowpost/queue";
import { keyOf } from "../relay/messages.ts";
import { type OpenedRowpost, openRowpost } from "../rowpost.ts";
import { orderMessage } from "../scenarios/business.ts";
import type { BenchDatabase } from "../servers/server.ts";

export const TOPIC = "orders";
const FILL_BATCH = 1_000;

/** A queue on a pool of the given size, with an empty topic. */
export interface OpenedQueue extends OpenedRowpost {
  readonly queue: Queue;
}

export async function openQueue(database: BenchDatabase, connections: number): Promise<OpenedQueue> {
  const rowpost = await openRowpost(database.url, connections);
  const queue = createQueue({ database: rowpost.database, producerGroup: "bench" });
  await queue.migrate();
  await queue.deleteTopic(TOPIC);
  await queue.createTopic({ topic: TOPIC });
  return {
    database: rowpost.database,
    queue,
    async close() {
      await queue.close();
      await rowpost.close();
    },
  };
}

/** A queue message about an order, with the body size of the other scenarios. */
export function queueMessage(number: number): QueueMessage {
  return { topic: TOPIC, type: "order.created", key: keyOf(number), body: orderMessage(number).body };
}

/** Fills the topic; not measured. */
export async function fillTopic(database: BenchDatabase, queue: Queue, messages: number): Promise<void> {
  for (let first = 1; first <= messages; first += FILL_BATCH) {
    const count = Math.min(FILL_BATCH, messages - first + 1);
    await queue.append(Array.from({ length: count }, (_, index) => queueMessage(first + index)));
  }
  await tidyTopic(database, monthTable());
}

export function monthTable(): string {
  const now = new Date();
  return `${TOPIC}_message_info_${now.getUTCFullYear() * 100 + now.getUTCMonth() + 1}`;
}

async function tidyTopic(database: BenchDatabase, table: string): Promise<void> {
  if (database.product === "postgres") await database.script(`VACUUM ANALYZE ${table}`);
  else if (database.product !== "sqlite") await database.script(`ANALYZE TABLE ${table}`);
}
