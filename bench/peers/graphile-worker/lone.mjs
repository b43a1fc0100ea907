/**
 * graphile-worker's runner in a process of its own, as the bench starts its relay processes: told
 * by IPC what to do, and answering in the same words (bench/src/relay/messages.ts). The settings
 * are its defaults but for prepared statements: one job at a time, no local queue.
 */
import { createRequire } from "node:module";
import { countQueries } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const statements = countQueries(load("pg"));
const { Logger, run } = load("graphile-worker");

let numbers = [];
let times = [];
let published = 0;

process.once("message", ({ url }) => {
  start(url).catch((error) => {
    console.error(error);
    process.exit(1);
  });
});
process.on("disconnect", () => process.exit(1));

async function start(url) {
  const worker = { connectionString: url, preparedStatements: true };
  const runner = await run({
    preset: { worker },
    logger: new Logger(() => () => {}),
    noHandleSignals: true,
    taskList: { order: publish },
  });
  process.on("message", (request) => {
    if (request === "report") report();
    else void runner.stop().then(() => process.exit(0));
  });
  process.send({ kind: "ready" });
  let told = -1;
  setInterval(() => {
    if (published !== told) process.send({ kind: "count", published });
    told = published;
  }, 250);
}

async function publish({ orderId }) {
  numbers.push(orderId);
  times.push(Number(process.hrtime.bigint()) / 1e6);
  published += 1;
}

function report() {
  process.send({
    kind: "report",
    numbers: Float64Array.from(numbers),
    atMs: Float64Array.from(times),
    statements: statements(),
  });
  numbers = [];
  times = [];
}
