/** Confirmations of unknown messages. The statements that keep them run on users' connections. */
import type { UnknownStatements } from "../sql/unknown-statements.ts";
import { COMPANION_NOW, whole } from "./clock.ts";
import { checked, IN_TRANSACTION } from "./enqueue.ts";
import { BYTES_COLLATION, type MysqlNames, TABLE_OPTIONS } from "./names.ts";

const IDENTITY = `CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION}`;
const REASON_LENGTH = 1024;

/** Several message tables may share it, so an existing table stays. */
export function unknownTable({ unmatched }: MysqlNames): string {
  return `CREATE TABLE IF NOT EXISTS ${unmatched} (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  message_type VARCHAR(64) ${IDENTITY} NOT NULL,
  message_key VARCHAR(128) ${IDENTITY} NOT NULL,
  consumer VARCHAR(128) ${IDENTITY} NOT NULL COMMENT 'empty: it gave no name',
  reason VARCHAR(${REASON_LENGTH}) CHARACTER SET utf8mb4 NULL COMMENT 'why it could not be handled; NULL = it was consumed',
  times BIGINT NOT NULL COMMENT 'how often this was said',
  first_at DATETIME(3) NOT NULL COMMENT 'UTC',
  last_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, message_type, message_key, consumer),
  KEY idx_last_at (table_name, last_at)
) ${TABLE_OPTIONS} COMMENT='confirmations of messages that are not there'`;
}

export function unknownStatements({ tableKey, unmatched }: MysqlNames): UnknownStatements {
  const text = (length: number): string => `VARCHAR(${length}) CHARACTER SET utf8mb4`;
  const source = `JSON_TABLE(?, '$[*]' COLUMNS (type ${text(64)} PATH '$[0]', name ${text(128)} PATH '$[1]', said_by ${text(128)} PATH '$[2]', why ${text(REASON_LENGTH)} PATH '$[3]' NULL ON EMPTY, said INT PATH '$[4]')) AS j`;
  return {
    /** A plain read: two parallel counts may exceed the limit by one call each. */
    countUnknown: (most) => ({
      name: "countUnknown",
      text: `SELECT COUNT(*) AS kept FROM (SELECT 1 FROM ${unmatched} WHERE table_name = ? LIMIT ${whole(most)}) AS u`,
      params: [tableKey],
    }),

    /**
     * Locks these entries in row order, as all calls do. If we die right after it, nothing is kept,
     * but the confirmations have committed before.
     */
    keepUnknown: (rows) => ({
      name: "keepUnknown",
      text: `INSERT INTO ${unmatched} (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
  SELECT ?, j.type, j.name, j.said_by, j.why, j.said, ${COMPANION_NOW}, ${COMPANION_NOW}
  FROM ${source}
  WHERE ${checked("TRUE", false, IN_TRANSACTION)}
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), times = times + VALUES(times), last_at = VALUES(last_at)`,
      params: [
        tableKey,
        JSON.stringify(rows.map(({ consumer, key, reason, times, type }) => [type, key, consumer, reason, times])),
      ],
    }),

    /**
     * Locks entries from the oldest on; a repeated report makes its entry younger. If we die right
     * after it, the expired entries are gone.
     */
    forgetUnknown: ({ limit, olderThanMs }) => ({
      name: "forgetUnknown",
      text: `DELETE FROM ${unmatched} WHERE table_name = ? AND last_at <= ${COMPANION_NOW} - INTERVAL ? * 1000 MICROSECOND
  ORDER BY last_at LIMIT ${whole(limit)}`,
      params: [tableKey, olderThanMs],
    }),
  };
}
