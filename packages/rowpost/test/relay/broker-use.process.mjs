/**
 * A program as the documentation shows it: one message, its relay, and the shutdown. Nothing ends
 * the process; it must end by itself. Prints what became of it as JSON.
 *
 * Arguments as JSON in argv[2]: { entry, factory, options, topic }: the broker's subpath, the
 * function of it, and what that gets. `resolveFrom`: a folder whose node_modules are used, instead
 * of the workspace's.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { entry, factory, options, topic, resolveFrom = import.meta.dirname } = JSON.parse(process.argv[2] ?? "{}");
const { resolve } = createRequire(`${resolveFrom}/program.js`);
const load = (name) => import(pathToFileURL(resolve(name)).href);

const { createOutbox, createRelay, migrate } = await load("rowpost");
const { sqlite } = await load("rowpost/sqlite");
const broker = (await load(entry))[factory](...options);
const database = sqlite({ file: ":memory:", onWarning: () => {} });
await migrate(database, { layout: database.defaultLayout });
const outbox = createOutbox({ database });
await outbox.transaction((tx) => outbox.enqueue(tx, { type: "t", key: `${process.pid}`, topic, body: {} }));

const relay = createRelay({ database, broker });
const outcome = new Promise((done) => {
  relay.on("sent", () => done("sent"));
  relay.on("brokerAway", () => done("away"));
});
try {
  await relay.start();
  console.log(JSON.stringify({ outcome: await outcome }));
} catch ({ code, message, retriable }) {
  console.log(JSON.stringify({ code, message, retriable }));
}
await relay.stop();
await database.close();
