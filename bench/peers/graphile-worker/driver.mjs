/** graphile-worker: 24 jobs at once, a local queue of 500, completed in batches, all prepared. */
import { createRequire } from "node:module";
import { bodyOf, countQueries, phaseOf, runPeer, runsOf } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const pg = load("pg");
const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const [url, messages, ...words] = process.argv.slice(2);
const statements = countQueries(pg);
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString: url, max: 10 });
let utils;
let runner;

await runPeer(
  {
    statements,
    async prepare() {
      utils = await makeWorkerUtils({ pgPool: pool, logger });
      await utils.migrate();
    },
    async fill(count) {
      for (const numbers of runsOf(count))
        await utils.addJobs(numbers.map((number) => ({ identifier: "order", payload: bodyOf(number) })));
    },
    tidy: () => pool.query("VACUUM ANALYZE"),
    async start(onPublish) {
      const worker = {
        connectionString: url,
        maxPoolSize: 10,
        pollInterval: 2_000,
        concurrentJobs: 24,
        preparedStatements: true,
        localQueue: { size: 500, ttl: 300_000 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      };
      const taskList = { order: async () => onPublish() };
      runner = await run({ preset: { worker }, logger, noHandleSignals: true, taskList });
    },
    stop: () => runner.stop(),
    async waiting() {
      const { rows } = await pool.query("SELECT COUNT(*) AS waiting FROM graphile_worker._private_jobs");
      return Number(rows[0].waiting);
    },
    async close() {
      await utils.release();
      await pool.end();
    },
  },
  Number(messages),
  phaseOf(words),
);
