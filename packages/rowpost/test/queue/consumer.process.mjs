/**
 * A member of a group in a process of its own. It writes a line into a ledger for each message and
 * kills itself with SIGKILL, or stops itself with SIGSTOP, at a named fault point. Ends by itself,
 * with exit code 0, when SIGTERM has stopped it.
 *
 * Arguments as JSON in argv[2]: { kind, url, ledger, group, transactional, size?, point?, hit?,
 * signal? }
 */
import { appendFileSync } from "node:fs";
import { createQueue } from "../../dist/queue/index.js";
import { openDatabase } from "./open-database.mjs";

const task = JSON.parse(process.argv[2] ?? "{}");
const { kind, url, ledger, group, transactional, size, point, hit, signal = "SIGKILL" } = task;

let hits = 0;
const database = await openDatabase({ kind, url });
const queue = createQueue({ database });
const text = `INSERT INTO effects (id) VALUES (${kind === "postgres" ? "$1" : "?"})`;
const options = {
  topic: "orders",
  group,
  transactional,
  batchSize: 20,
  logger: "silent",
  onFaultPoint(reached) {
    if (reached === point && ++hits === hit) process.kill(process.pid, signal);
  },
};
async function handler({ id, key }, { tx }) {
  appendFileSync(ledger, `${process.pid} ${key} ${id}\n`);
  if (transactional) await tx.query(text, [id]);
}
async function handleAll(messages, context) {
  for (const message of messages) await handler(message, context);
}
const consumer =
  size === undefined
    ? await queue.consume({ ...options, handler })
    : await queue.consumeBatches({ ...options, size, handler: handleAll });
process.send?.("ready");
async function stop() {
  const stopped = await consumer.stop();
  await queue.close();
  await database.close();
  process.send?.(stopped);
  process.disconnect?.();
}
process.once("SIGTERM", () => void stop());
