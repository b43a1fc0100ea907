/**
 * The raw limit of appends: multi-row INSERTs into the same table, a transaction each, with ids
 * counted by the program. Such ids are not safe to read by; that is what the queue adds.
 */
import { type Measurement, startMeter } from "../measure/meter.ts";
import { orderMessage } from "../scenarios/business.ts";
import type { BareConnection, BareStatement, BenchDatabase } from "../servers/server.ts";
import { monthTable } from "./topic.ts";

const QUEUE_EPOCH_MS = 1_577_836_800_000;

export async function rawAppend(
  database: BenchDatabase,
  { messages, batch, producers }: { messages: number; batch: number; producers: number },
): Promise<Measurement> {
  const connections = await openConnections(database, producers);
  const table = monthTable();
  const start = BigInt(Date.now() - QUEUE_EPOCH_MS) << 16n;
  const meter = await startMeter(database);
  meter.restart();
  let next = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (next < messages) {
        const first = next;
        next += batch;
        const rows = Array.from({ length: batch }, (_, index): Row => {
          const { key, body } = orderMessage(first + index + 1);
          return [String((start + BigInt(first + index)) << 6n), key, JSON.stringify(body)];
        });
        await connection.simple(database.product === "sqlite" ? "BEGIN IMMEDIATE" : "BEGIN");
        await connection.run(insert(database, table, rows));
        await connection.simple("COMMIT");
      }
    }),
  );
  const measured = await meter.stop(messages);
  await Promise.all(connections.map((connection) => connection.close()));
  return measured;
}

type Row = readonly [string, string, string];

/**
 * SQLite has one writer. Its commits wait for the disk, like those of a program and of the queue.
 */
async function openConnections(database: BenchDatabase, producers: number): Promise<BareConnection[]> {
  const count = database.product === "sqlite" ? 1 : producers;
  return await Promise.all(Array.from({ length: count }, () => database.connect("program")));
}

const COLUMNS = "partition_no, message_id, message_key, message_type, message_data, ip, port, producer_group";
const PLACE = ["127.0.0.1", null, "bench"] as const;

/** The fastest form of each database: one text, one array parameter, or values. */
function insert({ product }: BenchDatabase, table: string, rows: readonly Row[]): BareStatement {
  const name = `raw_append_${rows.length}`;
  if (product === "postgres") {
    return {
      name,
      text: `INSERT INTO ${table} (${COLUMNS}) SELECT 0, id, key, 'order.created', body, $4, $5::integer, $6 FROM unnest($1::bigint[], $2::text[], $3::text[]) AS new (id, key, body)`,
      params: [...[0, 1, 2].map((column) => rows.map((row) => row[column])), ...PLACE],
    };
  }
  return {
    name,
    text: `INSERT INTO ${table} (${COLUMNS}) VALUES ${rows.map(() => "(0, ?, ?, 'order.created', ?, ?, ?, ?)").join(", ")}`,
    params: rows.flatMap((row) => [...row, ...PLACE]),
  };
}
