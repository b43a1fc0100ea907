/**
 * A member of a group in a process of its own, whose handler dies, blocks or fails by the body of
 * the message. It writes a line into a ledger when a handler begins, and when it has ended.
 *
 * Arguments as JSON in argv[2]: { kind, url, ledger, options }
 */
import { appendFileSync } from "node:fs";
import { createQueue } from "../../dist/queue/index.js";
import { openDatabase } from "./open-database.mjs";

const { kind, url, ledger, options } = JSON.parse(process.argv[2] ?? "{}");

const database = await openDatabase({ kind, url });
const queue = createQueue({ database });
const note = (word, { key, attempt }) => appendFileSync(ledger, `${word} ${key} ${attempt} ${process.pid}\n`);
const logger = {
  debug: () => {},
  info: () => {},
  warn: (line) => appendFileSync(ledger, `log ${line}\n`),
  error: (line) => appendFileSync(ledger, `log ${line}\n`),
};
await queue.consume({
  topic: "orders",
  group: "g",
  logger,
  ...options,
  async handler(message) {
    note("begun", message);
    if (message.body === "die later" && message.attempt === 1) throw new Error("not yet");
    if (message.body === "die" || message.body === "die later") {
      // Those that run beside it have begun.
      await new Promise((resolve) => setImmediate(resolve));
      process.kill(process.pid, "SIGKILL");
    }
    if (typeof message.body?.blockMs === "number") {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, message.body.blockMs);
    }
    const { takesMs, dies = false } = message.body;
    if (takesMs !== undefined) await new Promise((resolve) => setTimeout(resolve, takesMs));
    if (dies) process.kill(process.pid, "SIGKILL");
    note("ended", message);
  },
});
process.send?.("ready");
