/** Messages of months that are over, as if they had been appended then. */
import { firstIdOf } from "../../src/message/queue-id.ts";
import type { QueuePlace } from "./places.ts";

export interface OldMessage {
  readonly key?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly partition?: number;
}

/** The id of the n-th message of a month: one every millisecond. */
export function oldId(month: number, n: number, partition = 0): string {
  return String(BigInt(firstIdOf(month)) + (BigInt(n) << 22n) + BigInt(partition));
}

/** Writes them into the table of the month, which has to be there; their ids. */
export async function writeOld(
  place: QueuePlace,
  topic: string,
  month: number,
  messages: readonly OldMessage[],
): Promise<string[]> {
  const ids = messages.map(({ partition = 0 }, index) => oldId(month, index, partition));
  const text = (value: string | undefined): string => (value === undefined ? "NULL" : `'${value}'`);
  const rows = messages.map(
    ({ key, type, headers, partition = 0 }, index) =>
      `(${partition}, ${ids[index]}, ${text(key)}, ${text(type)}, '${index}', ${text(headers && JSON.stringify(headers))})`,
  );
  await place.query(
    `INSERT INTO ${topic}_message_info_${month} (partition_no, message_id, message_key, message_type, message_data, headers) VALUES ${rows.join(", ")}`,
  );
  return ids;
}
