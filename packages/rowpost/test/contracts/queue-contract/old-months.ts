/** Messages of months that are over, as if they had been appended then. */
import { infoTable } from "../../../src/databases/sql/queue/names.ts";
import { firstIdOf } from "../../../src/message/queue-id.ts";
import type { QueueBench } from "./bench.ts";

/** A message of a month that is over. */
export interface OldMessage {
  /** Default 0. */
  readonly partition?: number | undefined;
  /** Its message key. */
  readonly key?: string | undefined;
  /** Default `{}`. */
  readonly body?: string | undefined;
}

/** The id of the n-th message of a month: one every millisecond. */
export function oldId(month: number, n: number, partition = 0): string {
  return String(BigInt(firstIdOf(month)) + (BigInt(n) << 22n) + BigInt(partition));
}

/** Writes them by hand, and the counters, as the appends of that month would have left them. */
export function createOldMonths(
  { first, sql, dialect }: QueueBench,
  topic: string,
): (month: number, messages: readonly OldMessage[]) => Promise<string[]> {
  return async (month, messages) => {
    await first.store.topics.makeMonths(topic, [month]);
    const ids = messages.map(({ partition }, n) => oldId(month, n, partition));
    const rows = messages.map(({ partition = 0, key, body = "{}" }, n) => {
      const texts = [key === undefined ? "NULL" : dialect.text(key), dialect.text(body)];
      return `(${partition}, ${ids[n]}, ${texts.join(", ")})`;
    });
    if (rows.length === 0) return ids;
    await sql(
      `INSERT INTO ${infoTable(topic, month)} (partition_no, message_id, message_key, message_data) VALUES ${rows.join(", ")}`,
    );
    const lasts = new Map(messages.map(({ partition = 0 }, n) => [partition, BigInt(ids[n] ?? 0) >> 6n]));
    for (const [partition, last] of lasts) {
      await sql(
        `UPDATE message_topic_partition SET last_id = ${last} WHERE topic_id = '${topic}' AND partition_no = ${partition} AND last_id < ${last}`,
      );
    }
    return ids;
  };
}
