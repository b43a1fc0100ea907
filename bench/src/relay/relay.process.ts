/**
 * A relay in a separate process, with the instant broker or endpoints of the bench. Started by
 * processes.ts and controlled by IPC.
 */
import { appendFileSync } from "node:fs";
import { type Broker, createRelay } from "rowpost";
import { instantBroker, throttledBroker } from "../broker.ts";
import { openRowpost } from "../rowpost.ts";
import { ledgerLines } from "./ledger.ts";
import {
  machineMs,
  numberOf,
  type RelayProcessMessage,
  type RelayProcessOrder,
  type RelayProcessRequest,
} from "./messages.ts";

let numbers: number[] = [];
let times: number[] = [];
let published = 0;

process.once("message", (order: RelayProcessOrder) => {
  run(order).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
// Ends with the bench, even if the bench dies.
process.on("disconnect", () => process.exit(1));

async function run(order: RelayProcessOrder): Promise<void> {
  const statements = await counterOf(order.url);
  const { database, close } = await openRowpost(order.url);
  const { sendingMark, label, publishTimeoutMs } = order;
  const relay = createRelay({ database, broker: await brokerOf(order), sendingMark, label, publishTimeoutMs });
  const stop = (): void => {
    void relay
      .stop()
      .then(close)
      .then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.on("message", (request: RelayProcessRequest) => {
    if (request === "report") {
      say({
        kind: "report",
        numbers: Float64Array.from(numbers),
        atMs: Float64Array.from(times),
        statements: statements(),
      });
      numbers = [];
      times = [];
    } else {
      stop();
    }
  });
  await relay.start();
  say({ kind: "ready" });
  tellCount(order.tellEveryMs ?? 20);
}

async function brokerOf(order: RelayProcessOrder): Promise<Broker> {
  const { endpoints, oneEndpoint = false, record, ledger, messagesPerSecond } = order;
  if (endpoints !== undefined) {
    const { http } = await import("rowpost/http");
    return http(oneEndpoint ? { url: endpoints } : { urlByTopic: (topic) => `${endpoints}/${topic}` });
  }
  const broker = instantBroker((batch) => {
    const now = machineMs();
    published += batch.length;
    if (ledger !== undefined) appendFileSync(ledger, ledgerLines(batch, now));
    if (!record) return;
    for (const { key } of batch) {
      numbers.push(numberOf(key));
      times.push(now);
    }
  });
  return messagesPerSecond === undefined ? broker : throttledBroker(broker, messagesPerSecond);
}

/** Reports progress, so that the bench need not query the database during the measurement. */
function tellCount(everyMs: number): void {
  let told = -1;
  setInterval(() => {
    if (published !== told) say({ kind: "count", published });
    told = published;
  }, everyMs);
}

/**
 * Loads only this database's driver, because the memory of a relay process is one of the figures.
 */
async function counterOf(url: string): Promise<() => number> {
  if (url.startsWith("postgres")) return (await import("../servers/postgres.ts")).countPostgresStatements();
  if (url.startsWith("sqlite:")) return await (await import("../servers/sqlite.ts")).countSqliteStatements();
  return () => 0;
}

function say(message: RelayProcessMessage): void {
  process.send?.(message);
}
