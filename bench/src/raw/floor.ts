/**
 * The floor of a drain, which no outbox can avoid: reads rows in batches and marks them sent, or
 * deletes them, by id; no lease, claim, receipt or times, one statement after another.
 */
import type { BareConnection, BenchDatabase } from "../servers/server.ts";

export interface Floor {
  readonly messages: number;
  readonly batchSize: number;
  readonly onSent: "keep" | "delete";
}

const READ =
  "SELECT id, message_type, message_key, topic, message_body, headers, ordering_key FROM local_message WHERE state = 0 AND next_retry_at IS NULL ORDER BY id LIMIT";

/** Drains a table in which only such rows wait. */
export async function runFloor(
  connection: BareConnection,
  product: BenchDatabase["product"],
  { messages, batchSize, onSent }: Floor,
): Promise<void> {
  const change = onSent === "delete" ? "DELETE FROM local_message" : "UPDATE local_message SET state = 2";
  for (let done = 0; done < messages; ) {
    const { rows } = await connection.run({ name: "floorRead", text: `${READ} ${batchSize}`, params: [] });
    const ids = rows.map((row) => String(row["id"]));
    const isArray = product === "postgres";
    const { affected } = await connection.run({
      name: "floorChange",
      text: `${change} WHERE id ${isArray ? "= ANY ($1::bigint[])" : `IN (${ids.map(() => "?").join(", ")})`}`,
      params: isArray ? [`{${ids.join(",")}}`] : ids,
    });
    if (affected !== rows.length || affected === 0) throw new Error(`the floor changed ${affected} of ${rows.length}`);
    done += affected;
  }
}
