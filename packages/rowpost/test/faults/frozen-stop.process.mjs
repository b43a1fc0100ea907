/**
 * A relay in a process of its own. It stops at the first message on its channel, reports how that
 * ended, and ends when nothing is left that keeps a process alive. Arguments as JSON in argv[2]:
 * { driver, url, drainTimeoutMs }.
 */
import { createRelay, memory } from "rowpost";

const { driver, url, drainTimeoutMs, wait } = JSON.parse(process.argv[2] ?? "{}");

async function open() {
  if (driver === "pg") return (await import("rowpost/postgres")).postgres({ url });
  if (driver === "mariadb") return (await import("rowpost/mariadb")).mariadb({ url });
  return (await import("rowpost/mysql")).mysql({ url });
}

const database = await open();
const relay = createRelay({
  database,
  broker: memory(),
  drainTimeoutMs,
  publishTimeoutMs: 2_000,
  leaseMs: 20_000,
  logger: "silent",
  // The parent freezes the database now; the outcomes of this batch cannot be written then.
  onFaultPoint: async (point) => {
    if (point !== wait) return;
    process.send({ reached: point });
    await stopped;
  },
});
const stopped = new Promise((resolve) => process.once("message", resolve));
// A transaction of the application leaves a connection of its pool.
await database.transaction(async () => undefined);
const starting = relay.start();
await stopped;
const report = await relay.stop();
process.send({ report });
await starting.catch(() => undefined);
await database.close();
process.disconnect();
