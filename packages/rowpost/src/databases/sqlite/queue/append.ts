/** Appending, in a transaction of the user's or of ours, on any SQLite from 3.35 on. */
import type { QueuedMessage } from "../../../queue/store.ts";
import { infoTable } from "../../sql/queue/names.ts";
import type { AppendStatements, SourceStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { after, before, NOW } from "../names.ts";
import { CLOCK_MS } from "./topics.ts";

export const append: AppendStatements = {
  /** With the file's one write lock until the commit: whoever gets later ids commits later. */
  advance: (topic, counts) => [
    {
      name: "advance",
      text: `UPDATE message_topic_partition
SET last_id = max(last_id + 1, ${CLOCK_MS} * 65536) - 1
  + (SELECT json_extract(batch.value, '$[1]') FROM json_each(?) AS batch WHERE json_extract(batch.value, '$[0]') = partition_no)
WHERE topic_id = ? AND partition_no IN (SELECT json_extract(value, '$[0]') FROM json_each(?))
RETURNING partition_no AS partitionno, CAST(last_id AS TEXT) AS lastid, keyed_partitions AS keyedpartitions`,
      params: [JSON.stringify(counts), topic, JSON.stringify(counts)],
    },
  ],

  insertMessages: ({ topic, month, rows, producer }) => ({
    name: "appendMessages",
    text: `INSERT INTO ${quoteName(infoTable(topic, month))} (partition_no, message_id, message_key, message_type, message_data, content_type, headers, ordering_key, deliver_at, ip, port, producer_group)
SELECT ${[0, 1, 2, 3, 4, 5, 6, 7].map(field).join(", ")},
  COALESCE(strftime('%Y-%m-%d %H:%M:%f', ${field(9)} / 1000.0, 'unixepoch'), ${after(field(8))}), ?, ?, ?
FROM json_each(?)`,
    params: [
      producer.ip,
      producer.port,
      producer.group,
      `[${rows.map(({ id, message }) => rowText(id, message)).join(",")}]`,
    ],
  }),
};

function field(place: number): string {
  return `json_extract(value, '$[${place}]')`;
}

/** In the order of the paths above. The id is a number that JavaScript cannot hold. */
function rowText(id: string, message: QueuedMessage): string {
  const { partition, key, type, body, contentType, headers, orderingKey, delayMs, deliverAtMs } = message;
  const rest = JSON.stringify([key, type, body, contentType, headers, orderingKey, delayMs, deliverAtMs]);
  return `[${partition},${id},${rest.slice(1)}`;
}

/** What was appended under a source id, so that a second append of it appends nothing. */
export const sources: SourceStatements = {
  // A row that is there is written as it is, so that it comes back.
  putSources: (topic, sources) => [
    {
      name: "putSources",
      text: `INSERT INTO message_source (topic_id, source_id, message_id, gmt_create)
SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ${NOW} FROM json_each(?) WHERE true
ON CONFLICT (topic_id, source_id) DO UPDATE SET message_id = message_source.message_id
RETURNING source_id AS sourceid, CAST(message_id AS TEXT) AS messageid`,
      params: [
        topic,
        `[${sources.map(({ sourceId, messageId }) => `[${JSON.stringify(sourceId)},${messageId}]`).join(",")}]`,
      ],
    },
  ],

  forgetSources: (olderThanMs, limit) => ({
    name: "forgetSources",
    text: `DELETE FROM message_source WHERE (topic_id, source_id) IN (
  SELECT topic_id, source_id FROM message_source WHERE gmt_create < ${before("?")} ORDER BY gmt_create LIMIT ?)`,
    params: [olderThanMs, limit],
  }),

  seeTables: () => ({
    name: "seeTables",
    text: "SELECT 1 AS seen FROM message_source WHERE topic_id = ''",
    params: [],
  }),
};
