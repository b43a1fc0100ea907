/**
 * A relay in a process of its own, as `rowpost relay` is one: runs until SIGTERM, then stops and
 * tells how that went. Its broker is a ledger file: a message is "on the broker" when its line is
 * in the file.
 *
 * Arguments as JSON in argv[2]: { service, url, ledger }
 */
import { appendFileSync } from "node:fs";
import { createRelay } from "rowpost";

const { service, url, ledger } = JSON.parse(process.argv[2] ?? "{}");
const { mysql, postgres } = await import(service === "postgres" ? "rowpost/postgres" : "rowpost/mysql");
const database = (mysql ?? postgres)({ url });
let receipts = 0;

async function publish(batch) {
  // As long as a broker on another host takes, so that a stop finds messages on their way.
  await new Promise((resolve) => setTimeout(resolve, 5));
  appendFileSync(ledger, batch.map(({ key }) => `${process.pid} ${key}\n`).join(""));
  return batch.map(() => ({ status: "sent", messageId: `${process.pid}-${++receipts}` }));
}

const nothing = async () => {};
const features = { ordering: "key", delay: false, reportsUnknownTopic: false, maxBodyBytes: undefined };
const relay = createRelay({
  database,
  broker: { name: "ledger", features, publish, check: nothing, close: nothing },
  batchSize: 100,
  heartbeatMs: 200,
});
async function stop() {
  const report = await relay.stop();
  await database.close();
  process.send?.({ ...report, ...relay.counts });
  process.exitCode = report.drained ? 0 : 1;
  process.disconnect?.();
}
process.once("SIGTERM", () => void stop());
await relay.start();
