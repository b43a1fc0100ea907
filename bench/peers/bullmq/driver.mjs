/** BullMQ on Redis, database 9: a worker with 100 jobs at once, finished jobs are removed. */
import { createRequire } from "node:module";
import { bodyOf, phaseOf, runPeer, runsOf } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const { Queue, Worker } = load("bullmq");

const [, messages, ...words] = process.argv.slice(2);
const { hostname: host, port } = new URL(process.env["ROWPOST_BENCH_REDIS"]);
const settings = { connection: { host, port: Number(port), db: 9, maxRetriesPerRequest: null } };
const queue = new Queue(`rowpost-bench-${process.pid}`, settings);
let worker;

await runPeer(
  {
    prepare: () => queue.waitUntilReady(),
    async fill(count) {
      for (const numbers of runsOf(count))
        await queue.addBulk(numbers.map((number) => ({ name: "order", data: bodyOf(number) })));
    },
    async start(onPublish) {
      const more = { concurrency: 100, removeOnComplete: { count: 0 } };
      worker = new Worker(queue.name, async () => onPublish(), { ...settings, ...more });
      await worker.waitUntilReady();
    },
    stop: () => worker.close(),
    async waiting() {
      const counts = await queue.getJobCounts("waiting", "active", "delayed", "prioritized");
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    async close() {
      await queue.obliterate({ force: true });
      await queue.close();
    },
  },
  Number(messages),
  phaseOf(words),
);
