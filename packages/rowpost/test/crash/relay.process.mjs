/**
 * A relay in a process of its own that kills itself with SIGKILL, or stops itself with SIGSTOP, at
 * a named fault point. Its broker is a ledger file: a message is "on the broker" when its line is
 * in the file. Ends by itself, with exit code 0, once the table is drained.
 *
 * Arguments as JSON in argv[2]: { service, url, ledger, point?, hit?, signal?, leaseMs,
 * heartbeatMs?, publishTimeoutMs?, sendingMark, onSent }
 */
import { appendFileSync } from "node:fs";
import { createRelay } from "rowpost";

const {
  service,
  url,
  ledger,
  point,
  hit,
  signal = "SIGKILL",
  leaseMs,
  heartbeatMs = Math.floor(leaseMs / 8),
  publishTimeoutMs = Math.floor(leaseMs / 4),
  sendingMark,
  onSent = "archive",
} = JSON.parse(process.argv[2] ?? "{}");

async function open() {
  if (service === "sqlite") return (await import("rowpost/sqlite")).sqlite({ file: url });
  if (service === "postgres") return (await import("rowpost/postgres")).postgres({ url });
  return (await import("rowpost/mysql")).mysql({ url });
}

let hits = 0;
let receipts = 0;
const database = await open();
const relay = createRelay({
  database,
  broker: {
    name: "ledger",
    features: { ordering: "key", delay: false, reportsUnknownTopic: false, maxBodyBytes: undefined },
    publish: async (batch) => {
      appendFileSync(ledger, batch.map(({ key, attempt }) => `${process.pid} ${key} ${attempt}\n`).join(""));
      return batch.map(() => ({ status: "sent", messageId: `${process.pid}-${++receipts}` }));
    },
    check: async () => {},
    close: async () => {},
  },
  // One batch at a time, so that a kill can leave no more than one batch between the broker and the
  // table.
  batchSize: 20,
  windowSize: 20,
  // The kills hit the same messages again and again, which is what the poison limit (rule:
  // crash-counting) is there to end: its tests are in test/rules.
  suspectAfter: 1_000,
  failAfter: 10_000,
  leaseMs,
  publishTimeoutMs,
  heartbeatMs,
  housekeepingMs: 50,
  sendingMark,
  retention: { onSent },
  onFaultPoint: (reached) => {
    if (reached !== point) return;
    hits += 1;
    if (hits === hit) process.kill(process.pid, signal);
  },
});
const report = await relay.drain({ timeoutMs: 20_000 });
await database.close();
const isDone = report.complete && report.drained;
if (!isDone) console.error("the table is not drained", report);
process.exitCode = isDone ? 0 : 1;
