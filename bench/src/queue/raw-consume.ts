/**
 * The raw limit of consuming: the library's own statements in a plain loop on one connection. Range
 * read, records and progress, without leases, handlers and failures.
 */
import { type Measurement, startMeter } from "../measure/meter.ts";
import { loadQueueStatements } from "../rowpost.ts";
import type { BenchDatabase } from "../servers/server.ts";
import type { Key, RawRecord } from "./statements.ts";
import { monthTable, TOPIC } from "./topic.ts";

const OWNER = "raw";
/** The limit of a member with nothing unhandled: 32 MiB for a batch of 200. */
const BODY_LIMIT = 167_772;
const LAST_ID = "9223372036854775807";

interface RawRun {
  readonly messages: number;
  readonly batch: number;
  readonly records: "each" | "batch";
  readonly group: string;
}

export async function rawConsume(database: BenchDatabase, run: RawRun): Promise<Measurement> {
  const connection = await database.connect("relay");
  try {
    return await readAll(database, connection, run);
  } finally {
    await connection.close();
  }
}

async function readAll(
  database: BenchDatabase,
  connection: Awaited<ReturnType<BenchDatabase["connect"]>>,
  { messages, batch, records, group }: RawRun,
): Promise<Measurement> {
  const { consume } = await loadQueueStatements(database.product);
  const key: Key = { topic: TOPIC, group };
  const month = Number(monthTable().slice(-6));
  const place = { ip: "127.0.0.1", port: null, instance: OWNER };
  await database.script(
    `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, next_message_id, message_date, owner)
VALUES ('${TOPIC}', '${group}', 0, 0, 0, '${OWNER}')`,
  );
  const meter = await startMeter(database);
  meter.restart();
  let fromId = "0";
  let read = 0;
  let bytes = 0;
  while (read < messages) {
    const request = { topic: TOPIC, month, partition: 0, fromId, toId: LAST_ID, limit: batch, bodyLimit: BODY_LIMIT };
    const { rows } = await connection.run(consume.readMessages(request));
    for (const row of rows) bytes += Object.keys(JSON.parse(String(row["message_data"])) as object).length;
    const all = rows.map((row) => recordOf(String(row["id"]), String(row["message_key"])));
    const [first] = all;
    const last = all.at(-1);
    if (first === undefined || last === undefined) throw new Error(`the topic ended after ${read} messages`);
    const nextId = String(BigInt(last.id) + 1n);
    const kept = records === "each" ? all : [{ ...first, lastId: last.id, messages: all.length, key: null }];
    const move = { partition: 0, owner: OWNER, epoch: "0", fromId, orId: fromId, nextId, month };
    const recorded = { month, round: 0, place, records: kept };
    if (consume.moveAndRecord !== undefined) {
      await connection.run(consume.moveAndRecord(key, move, recorded));
    } else {
      await connection.simple(database.product === "sqlite" ? "BEGIN IMMEDIATE" : "BEGIN");
      await connection.run(consume.moveProgress(key, move));
      await connection.run(consume.insertRecords(key, recorded));
      await connection.simple("COMMIT");
    }
    fromId = nextId;
    read += rows.length;
  }
  const measured = await meter.stop(messages);
  // Each settle starts where the previous one ended, so one that moved nothing is left behind.
  const { rows } = await connection.run({
    name: "progress",
    text: `SELECT COUNT(*) AS n FROM message_consumption WHERE consumer_group_id = '${group}' AND next_message_id = ${fromId}`,
    params: [],
  });
  if (Number(rows[0]?.["n"]) !== 1) throw new Error("the progress was not moved");
  if (bytes === 0) throw new Error("no body was read");
  return measured;
}

function recordOf(id: string, key: string): RawRecord {
  return { id, lastId: null, messages: 1, key, attempt: 1, result: "consumed", durationMs: 0, error: null };
}
