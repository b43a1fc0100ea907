/**
 * A relay in a process of its own that publishes into a queue and kills itself with SIGKILL at a
 * named fault point. Ends by itself, with exit code 0, once the table is drained.
 *
 * Arguments as JSON in argv[2]: { outbox: { kind, url }, queue?: { kind, url }, point?, hit? };
 * without `queue` it is in the outbox's database.
 */
import { createRelay } from "rowpost";
import { createQueue, queueBroker } from "rowpost/queue";

const { outbox, queue: apart, point, hit } = JSON.parse(process.argv[2] ?? "{}");

async function open({ kind, url }) {
  if (kind === "sqlite") return (await import("rowpost/sqlite")).sqlite({ file: url });
  if (kind === "postgres") return (await import("rowpost/postgres")).postgres({ url });
  return (await import("rowpost/mysql")).mysql({ url });
}

let hits = 0;
const database = await open(outbox);
const other = apart === undefined ? undefined : await open(apart);
const queue = createQueue({ database: other ?? database });
const relay = createRelay({
  database,
  broker: queueBroker({ queue }),
  batchSize: 20,
  windowSize: 20,
  onFaultPoint: (reached) => {
    if (reached !== point) return;
    hits += 1;
    if (hits === hit) process.kill(process.pid, "SIGKILL");
  },
});
const report = await relay.drain({ timeoutMs: 60_000 });
await queue.close();
await database.close();
await other?.close();
process.exitCode = report.complete && report.drained ? 0 : 1;
