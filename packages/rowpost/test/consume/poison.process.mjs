/**
 * A consumer of rabbitmq-limit.test.ts that dies of the message "poison". What it has handled and
 * warned of is written down at once: a message to the parent would die with it.
 */
import { appendFileSync } from "node:fs";
import { connect } from "amqplib";
import { consumeRabbitmq } from "../../dist/consume/index.js";

const { file, url, ...options } = JSON.parse(process.argv[2] ?? "{}");
const note = (line) => appendFileSync(file, `${line}\n`);
/** The work of a message: all that are here have begun when the poison is. */
const WORK_MS = 50;

const consumption = await consumeRabbitmq({
  ...options,
  inbox: "none",
  connect: () => connect(url),
  logger: {
    debug: () => undefined,
    info: () => undefined,
    warn: (line, fields) => note(`${line} ${String(fields?.messageId)}`),
    error: () => undefined,
  },
  handler: async ({ key }) => {
    if (key === "poison") process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, WORK_MS));
    note(key);
  },
});
process.once("message", () => {
  void consumption.close().then(() => process.exit(0));
});
