/** Appends, in a transaction of the user's or of ours, on SQLite from 3.35 on. */
import { readTopics } from "../../../queue/topics/statements.ts";
import { spelled } from "../../sql/cold.ts";
import { parameterRows } from "../../sql/queue/append-columns.ts";
import { infoTable } from "../../sql/queue/names.ts";
import type { AppendStatements, SourceStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { after, before, NOW } from "../names.ts";
import { words } from "../words.ts";
import { CLOCK_MS } from "./topics.ts";

export const append: AppendStatements = {
  takesTurns: false,
  findTopic: (topic) => () => spelled(words, readTopics(topic)),

  /**
   * Holds the file's only write lock until the commit: transactions with later ids commit later.
   */
  advance: (topic, counts) => [
    () => ({
      name: "advance",
      text: `UPDATE message_topic_partition
SET last_id = max(last_id + 1, ${CLOCK_MS} * 65536) - 1
  + (SELECT json_extract(batch.value, '$[1]') FROM json_each(?) AS batch WHERE json_extract(batch.value, '$[0]') = partition_no)
WHERE topic_id = ? AND partition_no IN (SELECT json_extract(value, '$[0]') FROM json_each(?))
RETURNING partition_no AS partitionno, CAST(last_id AS TEXT) AS lastid, keyed_partitions AS keyedpartitions`,
      params: [JSON.stringify(counts), topic, JSON.stringify(counts)],
    }),
  ],

  /**
   * Three texts per set of columns stay prepared; there are no round trips to save. CPU of an
   * append relative to bare INSERTs: 1.8 times; 2.3 times with json_extract from one JSON
   * parameter.
   */
  rowsOfInsert: (left) => (left >= 100 ? 100 : left >= 10 ? 10 : 1),

  insertMessages({ topic, month, ...given }) {
    const delay = ["deliverAtMs", "delayMs"] as const;
    const { columns, params, values } = parameterRows(given, { deliverAt: DELIVER_AT, delay });
    return () => ({
      name: "appendMessages",
      text: `INSERT INTO ${quoteName(infoTable(topic, month))} (${columns})
VALUES (?, ${values})${`, (?, ${values})`.repeat(given.rows.length - 1)}`,
      params,
    });
  },
};

/** Parameters: epoch milliseconds, delay in milliseconds; at most one of them is set. */
const DELIVER_AT = `COALESCE(strftime('%Y-%m-%d %H:%M:%f', ? / 1000.0, 'unixepoch'), ${after("?")})`;

export const sources: SourceStatements = {
  // An existing row is written unchanged so that it is returned.
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
