/**
 * A member of a group in a process of its own, whose handler dies, blocks, hangs or fails by the
 * body of the message. It writes a line into a ledger when a handler begins, and when it has ended;
 * with `transactional` also a row into the table effects, where that is there.
 *
 * Arguments as JSON in argv[2]: { kind, url, ledger, options }
 */
import { appendFileSync } from "node:fs";
import { createQueue } from "../../dist/queue/index.js";
import { openDatabase } from "./open-database.mjs";

const { kind, url, ledger, options } = JSON.parse(process.argv[2] ?? "{}");

const database = await openDatabase({ kind, url });
const queue = createQueue({ database });
const text = `INSERT INTO effects (id) VALUES (${kind === "postgres" ? "$1" : "?"})`;
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
  async handler(message, { tx }) {
    note("begun", message);
    if (message.body?.effect) await tx?.query(text, [message.id]);
    if (message.body?.hangs) await new Promise(() => {});
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
