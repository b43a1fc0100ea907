/**
 * A puller in a process of its own: receives forty messages, settles the first ones, tells which
 * settles have resolved, and then does nothing more until it is killed.
 *
 * Arguments as JSON in argv[2]: { kind, url, settled }
 */
import { createQueue } from "../../dist/queue/index.js";
import { openDatabase } from "./open-database.mjs";

const { kind, url, settled } = JSON.parse(process.argv[2] ?? "{}");

const queue = createQueue({ database: await openDatabase({ kind, url }) });
const puller = await queue.pull({ topic: "orders", group: "billing", logger: "silent" });
const messages = [];
while (messages.length < 40) messages.push(...(await puller.receive({ max: 40 - messages.length })));
const done = messages.slice(0, settled);
await Promise.all(done.map((message) => message.settle()));
process.send(done.map(({ id }) => id));
