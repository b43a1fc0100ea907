/**
 * PgQue as SQL only, from the file that ROWPOST_BENCH_PGQUE names: a tick every 10 ms, one reader
 * for each group that looks again after 5 ms.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";
import { countQueries, phaseOf, runPeer, sendAll } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const pg = load("pg");

const [url, messages, ...words] = process.argv.slice(2);
const { groups, phase } = phaseOf(words);
const names = Array.from({ length: groups }, (_, index) => `group${index}`);
const statements = countQueries(pg);
const control = new pg.Client({ connectionString: url });
const send = {
  name: "send",
  text: `SELECT pgque.send_batch('orders', 'order.created',
    (SELECT array_agg(e::text) FROM json_array_elements($1::json) e))`,
};
let stopping = false;
let working = [];

async function repeat(work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  while (!stopping) await work(client);
  await client.end();
}

function readAll(group, onPublish) {
  return repeat(async (client) => {
    const next = await client.query({
      name: "next",
      text: "SELECT pgque.next_batch('orders', $1) AS id",
      values: [group],
    });
    const [{ id }] = next.rows;
    if (id === null) return await setTimeout(5);
    const get = { name: "get", text: "SELECT ev_id, ev_data FROM pgque.get_batch_events($1)", values: [id] };
    for (const { ev_data } of (await client.query(get)).rows) onPublish(JSON.parse(ev_data));
    await client.query({ name: "finish", text: "SELECT pgque.finish_batch($1)", values: [id] });
  });
}

await runPeer(
  {
    statements,
    async prepare() {
      await control.connect();
      await control.query(`BEGIN; ${readFileSync(process.env["ROWPOST_BENCH_PGQUE"], "utf8")}; COMMIT;`);
      await control.query("SELECT pgque.create_queue('orders')");
      for (const name of names) await control.query("SELECT pgque.subscribe('orders', $1)", [name]);
      await control.query("SELECT pgque.set_queue_config('orders', 'ticker_max_lag', '1 millisecond')");
      await control.query("SELECT pgque.set_queue_config('orders', 'ticker_max_count', '1')");
    },
    fill: (count) => sendAll(control, send, count),
    tidy: () => control.query("VACUUM ANALYZE"),
    async start(onPublish) {
      stopping = false;
      const tick = async (client) => {
        await client.query("SELECT pgque.ticker()");
        await setTimeout(10);
      };
      working = [repeat(tick), ...names.map((name) => readAll(name, onPublish))];
    },
    async stop() {
      stopping = true;
      await Promise.all(working);
    },
    // The last batch is finished before stop() ends: a group's progress is one row.
    waiting: async () => 0,
    close: () => control.end(),
  },
  Number(messages),
  { groups, phase },
);
