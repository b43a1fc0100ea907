/**
 * The inbox: messages that a consumer has handled. Independent of the session's time zone; checks
 * its character set and sql_mode.
 */
import type { HandlingRow } from "../../inbox/store.ts";
import type { InboxDialect, InboxStatements } from "../sql/inbox-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { COMPANION_NOW, isoText, utcOfEpochMs, whole } from "./clock.ts";
import { checked, IN_TRANSACTION, notEnded, STRICT } from "./enqueue.ts";
import { errorNumber, translateError } from "./errors.ts";
import { BYTES_COLLATION, createNames, quoteName } from "./names.ts";
import { schemaStatements } from "./schema.ts";

/** innodb_lock_wait_timeout exceeded; NOWAIT. */
const WAIT_OVER = new Set([1205, 3572]);
/** SAVEPOINT does not exist. */
const NO_SAVEPOINT = 1305;

export const inbox: InboxDialect = {
  createStatements,
  translateError,
  isWaitOver: (error) => WAIT_OVER.has(errorNumber(error)),
  isSavepointGone: (error) => errorNumber(error) === NO_SAVEPOINT,
};

function createStatements(layout: TableLayout): InboxStatements {
  const table = `${layout.schema === undefined ? "" : `${quoteName(layout.schema)}.`}${quoteName(layout.table)}`;
  return {
    /**
     * Locks the new row until the transaction ends. Another insert of the identity waits, at most
     * innodb_lock_wait_timeout, then fails as a duplicate or, after a rollback, succeeds. The
     * identity is the primary key, where a duplicate share-locks only its own row; a secondary key
     * would also lock the gap and block other messages. No IGNORE: it would cut a long key. If we
     * die right after it, the row does not exist.
     */
    record: ({ consumer, type, key, topic, messageId, attempt, handledBy }, { asked }) => ({
      name: "recordHandling",
      text: `INSERT INTO ${table} (attempt, consumer, message_type, message_key, topic, message_id, handled_by, handled_at)
  VALUES (${checked("?", asked, IN_TRANSACTION + STRICT)}, ?, ?, ?, ?, ?, ?, ${COMPANION_NOW})`,
      params: [attempt, consumer, type, key, topic, messageId, handledBy],
    }),

    /**
     * Locks the row in share mode, as the failed INSERT did, so it reads committed data even in an
     * older REPEATABLE READ transaction.
     */
    readHandling: ({ consumer, type, key }: HandlingRow, { asked }) => ({
      name: "readHandling",
      text: `SELECT ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid, attempt AS attempt
  FROM ${table}
  WHERE ${asked ? `${notEnded("TRUE")} AND ` : ""}consumer = ? AND message_type = ? AND message_key = ? LOCK IN SHARE MODE`,
      params: [consumer, type, key],
    }),

    /**
     * Locks and deletes the oldest rows. They are older than any retry, so they are not inserted
     * again. Parallel calls wait for each other in the same order. If we die right after it, either
     * all of them are gone or none.
     */
    forgetHandlings: ({ olderThanMs, limit }) => ({
      name: "forgetHandlings",
      text: `DELETE FROM ${table} WHERE handled_at < ${COMPANION_NOW} - INTERVAL ${whole(olderThanMs)} * 1000 MICROSECOND ORDER BY handled_at LIMIT ${whole(limit)}`,
      params: [],
    }),

    // Uses the index on the time, which includes the primary key, so it reads only the page. IF and
    // IS TRUE keep position and consumer out of the range: with them MariaDB would sort.
    readHandlings({ after, consumer, fromMs, limit, toMs }) {
      const place = utcOfEpochMs(whole(after === undefined ? fromMs : Date.parse(after.handledAt)));
      const behind =
        after === undefined
          ? ""
          : `\n    AND IF(handled_at = ${place}, (consumer, message_type, message_key) > (?, ?, ?), TRUE)`;
      return {
        name: "readHandlings",
        text: `SELECT consumer, message_type AS type, message_key AS \`key\`, ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid
  FROM ${table} FORCE INDEX (idx_handled_at)
  WHERE handled_at >= ${place} AND handled_at < ${utcOfEpochMs(whole(toMs))}${behind}${consumer === undefined ? "" : " AND (consumer = ?) IS TRUE"}
  ORDER BY handled_at, consumer, message_type, message_key LIMIT ${whole(limit)}`,
        params: [
          ...(after === undefined ? [] : [after.consumer, after.type, after.key]),
          ...(consumer === undefined ? [] : [consumer]),
        ],
      };
    },

    schema: {
      ...schemaStatements(createNames(layout)),
      migrations: [{ version: 1, name: "inbox", statements: [inboxTable(table)] }],
    },
  };
}

function inboxTable(table: string): string {
  const identity = `CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION} NOT NULL`;
  return `CREATE TABLE IF NOT EXISTS ${table} (
  consumer VARCHAR(64) ${identity} COMMENT 'who has handled it',
  message_type VARCHAR(128) ${identity},
  message_key VARCHAR(255) ${identity} COMMENT 'unique together with consumer and type',
  topic VARCHAR(255) NULL,
  message_id VARCHAR(255) NULL COMMENT 'what the broker calls the copy that was handled',
  attempt INT NULL COMMENT 'claim of the relay that the copy comes from',
  handled_by VARCHAR(128) NOT NULL COMMENT 'host and process',
  handled_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (consumer, message_type, message_key),
  KEY idx_handled_at (handled_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='messages that consumers have handled'`;
}
