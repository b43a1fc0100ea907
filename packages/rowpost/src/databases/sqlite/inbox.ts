/**
 * The inbox: messages that a consumer has handled. Works on SQLite from 3.35 on, since the handle
 * is the user's.
 */
import type { InboxDialect, InboxStatements } from "../sql/inbox-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { inSchema, quoteName } from "../sql/sql-names.ts";
import { isBusy, translateError } from "./errors.ts";
import { before, createNames, isoText, NOW } from "./names.ts";
import { schemaStatements } from "./schema.ts";

export const inbox: InboxDialect = {
  createStatements,
  translateError,
  isWaitOver: isBusy,
  isSavepointGone: (error) => error instanceof Error && /no such savepoint/.test(error.message),
  savepointBegins: true,
};

function createStatements(layout: TableLayout): InboxStatements {
  const table = inSchema(layout, layout.table);
  return {
    /**
     * Takes the file's write lock: another insert waits in BEGIN IMMEDIATE or gets SQLITE_BUSY. If
     * we die right after it, the row does not exist.
     */
    record: ({ consumer, type, key, topic, messageId, attempt, handledBy }, { isOwn }) => ({
      name: "recordHandling",
      // Our drivers return the count; an ORM may return only rows.
      text: `INSERT INTO ${table} (consumer, message_type, message_key, topic, message_id, attempt, handled_by, handled_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ${NOW})
ON CONFLICT (consumer, message_type, message_key) DO NOTHING${isOwn === true ? "" : "\nRETURNING 1 AS recorded"}`,
      params: [consumer, type, key, topic, messageId, attempt, handledBy],
    }),

    readHandling: ({ consumer, type, key }) => ({
      name: "readHandling",
      text: `SELECT ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid, attempt AS attempt
FROM ${table} WHERE consumer = ? AND message_type = ? AND message_key = ?`,
      params: [consumer, type, key],
    }),

    /**
     * Takes the file's write lock. If we die right after it, either all of the rows are gone or
     * none.
     */
    forgetHandlings: ({ olderThanMs, limit }) => ({
      name: "forgetHandlings",
      text: `DELETE FROM ${table} WHERE (consumer, message_type, message_key) IN (
  SELECT consumer, message_type, message_key FROM ${table} WHERE handled_at < ${before("?")} ORDER BY handled_at LIMIT ?)`,
      params: [olderThanMs, limit],
    }),

    // The index on the time includes the primary key and has the page's order.
    readHandlings({ after, consumer, fromMs, limit, toMs }) {
      const instant = (ms: number): string => new Date(ms).toISOString().replace("T", " ").replace("Z", "");
      const place = instant(after === undefined ? fromMs : Date.parse(after.handledAt));
      const behind = "\n  AND NOT (handled_at = ? AND (consumer, message_type, message_key) <= (?, ?, ?))";
      return {
        name: "readHandlings",
        text: `SELECT consumer, message_type AS type, message_key AS key, ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid
FROM ${table}
WHERE handled_at >= ? AND handled_at < ? AND (?3 IS NULL OR consumer = ?3)${after === undefined ? "" : behind}
ORDER BY handled_at, consumer, message_type, message_key LIMIT ${limit}`,
        params: [
          place,
          instant(toMs),
          consumer ?? null,
          ...(after === undefined ? [] : [place, after.consumer, after.type, after.key]),
        ],
      };
    },

    schema: {
      ...schemaStatements(createNames(layout)),
      migrations: [{ version: 1, name: "inbox", statements: inboxTable(layout, table) }],
    },
  };
}

/** SQLite stores no lengths; the inbox checks them. Text compares by bytes (rule: exact-bytes). */
function inboxTable(layout: TableLayout, table: string): readonly string[] {
  const index = `${layout.schema === undefined ? "" : `${quoteName(layout.schema)}.`}${quoteName(`${layout.table}_at`)}`;
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  consumer TEXT NOT NULL,
  message_type TEXT NOT NULL,
  message_key TEXT NOT NULL,
  topic TEXT,
  message_id TEXT,                     -- what the broker calls the copy that was handled
  attempt INTEGER,                     -- claim of the relay that the copy comes from
  handled_by TEXT NOT NULL,            -- host and process
  handled_at TEXT NOT NULL,            -- UTC
  PRIMARY KEY (consumer, message_type, message_key)
) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS ${index} ON ${quoteName(layout.table)} (handled_at)`,
  ];
}
