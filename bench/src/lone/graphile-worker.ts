/** The same program with graphile-worker: jobs added by its SQL function in the transaction. */
import pg from "pg";
import { installPeer } from "../peers/install.ts";
import { machineMs } from "../relay/messages.ts";
import { type RelayProcess, startPublishing } from "../relay/processes.ts";
import { insertOrder, orderMessage, orderValues } from "../scenarios/business.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type LoneRun, runLoad } from "./program.ts";

/** The Node.js version that its driver brings. */
const NODE_22 = "node_modules/node22/bin/node";
const ADD = "SELECT graphile_worker.add_job('order', $1::json)";

/** Starts its runner in a separate process; the first start creates its tables. */
export async function startGraphileWorker(database: BenchDatabase): Promise<RelayProcess> {
  const folder = installPeer("graphile-worker", "package.json");
  return await startPublishing(`${folder}/lone.mjs`, { url: database.url }, `${folder}/${NODE_22}`);
}

export async function runJobs(
  database: BenchDatabase,
  messages: number,
  publisher: RelayProcess | undefined,
): Promise<LoneRun> {
  const pool = new pg.Pool({ connectionString: database.url, max: 8 });
  pool.on("connect", (client) => client.on("error", () => undefined));
  const insert = insertOrder(database);
  const run = await runLoad({
    database,
    messages,
    publisher,
    async begin(number, stamps) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await client.query(insert, [...orderValues(number)]);
        await client.query(ADD, [JSON.stringify({ ...orderMessage(number).body, orderId: number })]);
        stamps.set(number, machineMs());
        await client.query("COMMIT");
      } finally {
        client.release();
      }
    },
  });
  await pool.end();
  return run;
}
