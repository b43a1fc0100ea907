import { type Measurement, startMeter } from "../measure/meter.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type OpenedQueue, queueMessage, TOPIC } from "./topic.ts";

const CONSUME_BATCH = 500;

export async function appendAll(
  database: BenchDatabase,
  queue: OpenedQueue["queue"],
  { batch, messages, producers }: { readonly messages: number; readonly batch: number; readonly producers: number },
): Promise<Measurement> {
  const meter = await startMeter(database);
  meter.restart();
  let next = 0;
  await Promise.all(
    Array.from({ length: producers }, async () => {
      while (next < messages) {
        const first = next + 1;
        next += batch;
        await queue.append(Array.from({ length: batch }, (_, index) => queueMessage(first + index)));
      }
    }),
  );
  return await meter.stop(messages);
}

/** From joining to leaving the groups: some 100 ms are neither reads nor progress. */
export async function consumeAll(
  database: BenchDatabase,
  { queue }: OpenedQueue,
  {
    groups,
    messages,
    records,
  }: { readonly messages: number; readonly groups: readonly string[]; readonly records: "each" | "batch" },
): Promise<Measurement> {
  const meter = await startMeter(database);
  meter.restart();
  await Promise.all(
    groups.map(async (group) => {
      let handled = 0;
      let all = (): void => undefined;
      const reached = new Promise<void>((resolve) => {
        all = resolve;
      });
      const consumer = await queue.consume({
        topic: TOPIC,
        group,
        records,
        batchSize: CONSUME_BATCH,
        handler: () => {
          handled += 1;
          if (handled === messages) all();
        },
      });
      await reached;
      const { drained } = await consumer.stop();
      if (!drained) throw new Error(`${group} left something behind`);
    }),
  );
  return await meter.stop(messages * groups.length);
}
