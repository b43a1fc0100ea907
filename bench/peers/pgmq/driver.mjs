/**
 * pgmq as SQL only, from the file that ROWPOST_BENCH_PGMQ names: one reader of 500 messages with a
 * poll of 10 ms, deleted as a batch.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { countQueries, phaseOf, runPeer, sendAll } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const pg = load("pg");

const [url, messages, ...words] = process.argv.slice(2);
const statements = countQueries(pg);
const control = new pg.Client({ connectionString: url });
const send = {
  name: "send",
  text: "SELECT pgmq.send_batch('orders', (SELECT array_agg(e) FROM jsonb_array_elements($1::jsonb) e))",
};
const read = { name: "read", text: "SELECT * FROM pgmq.read_with_poll('orders', 30, 500, 1, 10)" };
const remove = { name: "remove", text: "SELECT pgmq.delete('orders', $1::bigint[])" };
let stopping = false;
let reading;

async function readAll(onPublish) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  while (!stopping) {
    const { rows } = await client.query(read);
    if (rows.length === 0) continue;
    for (const _ of rows) onPublish();
    await client.query({ ...remove, values: [rows.map(({ msg_id }) => msg_id)] });
  }
  await client.end();
}

await runPeer(
  {
    statements,
    async prepare() {
      await control.connect();
      await control.query(readFileSync(process.env["ROWPOST_BENCH_PGMQ"], "utf8"));
      await control.query("SELECT pgmq.create('orders')");
    },
    fill: (count) => sendAll(control, send, count),
    tidy: () => control.query("VACUUM ANALYZE"),
    async start(onPublish) {
      stopping = false;
      reading = readAll(onPublish);
    },
    async stop() {
      stopping = true;
      await reading;
    },
    async waiting() {
      const { rows } = await control.query("SELECT COUNT(*) AS waiting FROM pgmq.q_orders");
      return Number(rows[0].waiting);
    },
    close: () => control.end(),
  },
  Number(messages),
  phaseOf(words),
);
