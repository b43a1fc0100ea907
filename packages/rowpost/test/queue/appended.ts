/** What is in a topic's message tables, read by hand. */
import type { QueuePlace } from "./places.ts";

/** A row of a message table. */
export interface AppendedRow {
  readonly id: string;
  readonly month: number;
  readonly partition: number;
  readonly key: string | null;
  readonly type: string | null;
  readonly body: string;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly orderingKey: string | null;
  readonly ip: string | null;
  readonly port: number | null;
  readonly producerGroup: string | null;
}

/** All months, in the order of the ids. */
export async function appendedTo(place: QueuePlace, topic: string): Promise<AppendedRow[]> {
  const database = place.open();
  const store = database.queue.store();
  const months = await store.topics.months(topic);
  await store.close();
  const type = place.address.kind === "sqlite" ? "TEXT" : place.address.kind === "mysql" ? "CHAR" : "text";
  const rows: AppendedRow[] = [];
  for (const month of months) {
    const found = await place.query(
      `SELECT CAST(message_id AS ${type}) AS id, partition_no, message_key, message_type, message_data, content_type, headers, ordering_key, ip, port, producer_group FROM ${topic}_message_info_${month} ORDER BY message_id`,
    );
    rows.push(
      ...found.map((row) => ({
        id: String(row["id"]),
        month,
        partition: Number(row["partition_no"]),
        key: row["message_key"] as string | null,
        type: row["message_type"] as string | null,
        body: String(row["message_data"]),
        contentType: row["content_type"] as string | null,
        headers: JSON.parse((row["headers"] as string | null) ?? "{}") as Record<string, string>,
        orderingKey: row["ordering_key"] as string | null,
        ip: row["ip"] as string | null,
        port: row["port"] === null ? null : Number(row["port"]),
        producerGroup: row["producer_group"] as string | null,
      })),
    );
  }
  return rows;
}
