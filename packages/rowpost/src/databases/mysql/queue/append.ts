/**
 * Appends, in a transaction of the user's or of ours. Independent of the session's time zone;
 * returns ids as text; checks character set and sql_mode.
 */
import type { Statement } from "../../../transactions/executor.ts";
import { isOne, type MessageCounts, parameterRows } from "../../sql/queue/append-columns.ts";
import { infoTable } from "../../sql/queue/names.ts";
import type { AppendStatements, SourceStatements } from "../../sql/queue/statements.ts";
import { COMPANION_NOW, NOT_SAFE, whole } from "../clock.ts";
import { checked, NOT_ENDED as ENDED, IN_TRANSACTION } from "../enqueue.ts";
import { quoteName } from "../names.ts";
import { CLOCK_MS, selectTopics } from "./topics.ts";

export const append: AppendStatements = {
  takesTurns: true,

  /** A snapshot read; locks only in SERIALIZABLE. */
  findTopic:
    (topic) =>
    ({ asked }) => ({
      name: "findTopic",
      text: `${selectTopics(`CASE WHEN FALSE THEN 0${asked ? NOT_ENDED : ""} ELSE t.partitions END`)}
  WHERE t.topic_id = ?`,
      params: [topic],
    }),

  /**
   * Locks the counter rows in partition order until the transaction ends: later ids commit later,
   * so a reader that saw an id has seen all before it. If we die right after it, the counters are
   * as before.
   */
  advance: (topic, counts) => [
    ({ asked }) => (isOne(counts) ? advanceOne(topic, ...counts[0], asked) : advanceSeveral(topic, counts, asked)),
    () => ({
      name: "advanced",
      text: `SELECT CASE WHEN FALSE THEN 0${NOT_ENDED} ELSE partition_no END AS partitionno, CAST(last_id AS CHAR) AS lastid, keyed_partitions AS keyedpartitions
  FROM message_topic_partition WHERE topic_id = ? AND partition_no IN (${counts.map(() => "?").join(", ")})`,
      params: [topic, ...counts.map(([partition]) => partition)],
    }),
  ],

  /**
   * The text for 100 rows repeats and is prepared on our own pool (transactions/prepare.ts). Server
   * CPU relative to bare INSERTs of 100 (MariaDB 10.11): 0.8 times, as text 1.1 to 1.2 times, with
   * up to 500 rows 1.4 to 1.8 times.
   */
  rowsOfInsert: (left) => Math.min(left, 100),

  /**
   * New rows at the end of their partition, not read before the counter is committed. Ids are
   * parameters, because users' handles prepare each text.
   */
  insertMessages({ topic, month, ...given }) {
    const { columns, params, values } = parameterRows(given, {
      deliverAt: DELIVER_AT,
      delay: ["delayMs", "deliverAtMs"],
    });
    const others = `, (?, ${values})`.repeat(given.rows.length - 1);
    return () => ({
      name: given.rows.length === 1 ? "appendMessage" : "appendMessages",
      text: `INSERT INTO ${quoteName(infoTable(topic, month))} (${columns})
  VALUES (${checked("?", true, IN_TRANSACTION)}, ${values})${others}`,
      params,
    });
  },
};

/** A DOUBLE among the cases would round every id to an even number. */
const signed = (check: string): string => check.replace("EXP(999)", "CAST(EXP(999) AS SIGNED)");
const NOT_ENDED = signed(ENDED);
const STILL_IN = signed(IN_TRANSACTION);

const advancedBy = (messages: string, asked: boolean): string =>
  `c.last_id = CASE WHEN FALSE THEN 0${STILL_IN}${asked ? NOT_ENDED : ""} ELSE GREATEST(c.last_id + 1, (${CLOCK_MS}) * 65536) + ${messages} - 1 END`;

/** The common case: one round trip of 130 us on MariaDB 10.11, against 190. */
function advanceOne(topic: string, partition: number, messages: number, asked: boolean): Statement {
  return {
    name: "advanceOne",
    text: `UPDATE message_topic_partition AS c
  SET ${advancedBy("CAST(? AS SIGNED)", asked)}
  WHERE c.topic_id = ? AND c.partition_no = ?`,
    params: [messages, topic, partition],
  };
}

function advanceSeveral(topic: string, counts: MessageCounts, asked: boolean): Statement {
  return {
    name: "advance",
    text: `${NOT_SAFE}UPDATE JSON_TABLE(?, '$[*]' COLUMNS (partition_no INT PATH '$[0]', messages INT PATH '$[1]')) AS j
  STRAIGHT_JOIN message_topic_partition AS c ON c.topic_id = ? AND c.partition_no = j.partition_no
  SET ${advancedBy("j.messages", asked)}`,
    params: [JSON.stringify(counts), topic],
  };
}

/** Parameters: delay in milliseconds, epoch milliseconds; at most one of them is set. */
const DELIVER_AT =
  "COALESCE(UTC_TIMESTAMP(3) + INTERVAL (? * 1000) MICROSECOND, TIMESTAMP'1970-01-01 00:00:00' + INTERVAL (? * 1000) MICROSECOND)";

export const sources: SourceStatements = {
  /**
   * Locks these rows until the transaction ends: a parallel append of the same sources waits and
   * then finds them. If we die right after it, nothing is recorded. The second statement reads
   * committed data at any isolation level.
   */
  putSources: (topic, sources) => [
    {
      name: "putSources",
      text: `INSERT INTO message_source (topic_id, source_id, message_id, gmt_create)
  SELECT ?, j.source_id, j.message_id, ${COMPANION_NOW}
  FROM JSON_TABLE(?, '$[*]' COLUMNS (source_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]', message_id BIGINT PATH '$[1]')) AS j
  ON DUPLICATE KEY UPDATE message_id = message_source.message_id`,
      params: [
        topic,
        `[${sources.map(({ sourceId, messageId }) => `[${JSON.stringify(sourceId)},${messageId}]`).join(",")}]`,
      ],
    },
    {
      name: "readSources",
      text: `SELECT source_id AS sourceid, CAST(message_id AS CHAR) AS messageid FROM message_source
  WHERE topic_id = ? AND source_id IN (${sources.map(() => "?").join(", ")}) LOCK IN SHARE MODE`,
      params: [topic, ...sources.map(({ sourceId }) => sourceId)],
    },
  ],

  /** Locks the rows it deletes, which are older than any retry. */
  forgetSources: (olderThanMs, limit) => ({
    name: "forgetSources",
    text: `DELETE FROM message_source WHERE gmt_create < ${COMPANION_NOW} - INTERVAL ${whole(olderThanMs)} * 1000 MICROSECOND ORDER BY gmt_create LIMIT ${whole(limit)}`,
    params: [],
  }),

  seeTables: () => ({
    name: "seeTables",
    text: "SELECT 1 AS seen FROM message_source WHERE topic_id = ''",
    params: [],
  }),
};
