/**
 * pg-boss: batches of 500, two workers, polls of 0.5 s (its shortest) and at once after a full
 * batch. Several groups would be several queues, each with a copy of every message.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { bodyOf, countQueries, phaseOf, runPeer, runsOf } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const pg = load("pg");
const { PgBoss } = await import(pathToFileURL(load.resolve("pg-boss")).href);

const [url, messages, ...words] = process.argv.slice(2);
const QUEUE = "orders";
const statements = countQueries(pg);
const control = new pg.Client({ connectionString: url });
const boss = new PgBoss({ connectionString: url, max: 10, supervise: false, schedule: false });
boss.on("error", (error) => console.error(error.message));

await runPeer(
  {
    statements,
    async prepare() {
      await control.connect();
      await boss.start();
      await boss.createQueue(QUEUE);
    },
    async fill(count) {
      for (const numbers of runsOf(count))
        await boss.insert(
          QUEUE,
          numbers.map((number) => ({ data: bodyOf(number) })),
        );
    },
    tidy: () => control.query("VACUUM ANALYZE"),
    async start(onPublish) {
      const settings = { batchSize: 500, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
      await boss.work(QUEUE, settings, async (jobs) => {
        for (const _ of jobs) onPublish();
      });
    },
    stop: () => boss.offWork(QUEUE),
    async waiting() {
      const { rows } = await control.query("SELECT COUNT(*) AS waiting FROM pgboss.job WHERE state < 'completed'");
      return Number(rows[0].waiting);
    },
    async close() {
      await boss.stop({ graceful: false, close: true });
      await control.end();
    },
  },
  Number(messages),
  phaseOf(words),
);
