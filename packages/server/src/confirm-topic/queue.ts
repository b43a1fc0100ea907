import { openQueue } from "../queue-url.ts";
import type { OpenSource } from "./source.ts";

export const fromQueueTopic: OpenSource = async ({ environment, group, topic, url }, { database, logger, take }) => {
  const opened = await openQueue(url, environment, database);
  try {
    const consumer = await opened.queue.consume({
      topic,
      group,
      logger,
      records: "batch",
      concurrency: 100,
      // While the database is away, waiting messages must not become dead letters.
      retry: { maxAttempts: 2 ** 31 - 1 },
      handler: ({ body }) => take(textOf(body)),
    });
    return {
      async close() {
        const { drained } = await consumer.stop();
        await opened.close();
        return { drained };
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
};

/** The queue has decoded the body by its content type. */
function textOf(body: unknown): string {
  if (body instanceof Uint8Array) return Buffer.from(body).toString("utf8");
  return typeof body === "string" ? body : JSON.stringify(body);
}
