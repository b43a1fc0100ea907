/** The inbox: messages that a consumer has handled. */
import type { InboxDialect, InboxStatements } from "../sql/inbox-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { inSchema, quoteName } from "../sql/sql-names.ts";
import { isMarked, leaveMark, markTransaction } from "./enqueue.ts";
import { errorCode, translateError } from "./errors.ts";
import { createNames, isoText, NOW } from "./names.ts";
import { schemaStatements } from "./schema.ts";

/** lock_timeout exceeded. */
const LOCK_NOT_AVAILABLE = "55P03";
/** SAVEPOINT outside a transaction block; no such savepoint. */
const NO_SAVEPOINT: ReadonlySet<string | undefined> = new Set(["25P01", "3B001"]);

export const inbox: InboxDialect = {
  createStatements,
  translateError,
  isWaitOver: (error) => errorCode(error) === LOCK_NOT_AVAILABLE,
  isSavepointGone: (error) => NO_SAVEPOINT.has(errorCode(error)),
};

function createStatements(layout: TableLayout): InboxStatements {
  const table = inSchema(layout, layout.table);
  const columns = "consumer, message_type, message_key, topic, message_id, attempt, handled_by, handled_at";
  const unlessThere = "ON CONFLICT (consumer, message_type, message_key) DO NOTHING";
  // Our drivers return the count; an ORM may return only rows.
  const recordOwn = `INSERT INTO ${table} (${columns})
VALUES ($1, $2, $3, $4, $5, $6, $7, ${NOW})
${unlessThere}`;
  const recordWithin = `INSERT INTO ${table} (${columns})
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::integer, $7::text, ${NOW}
WHERE (SELECT CASE WHEN $9::boolean THEN ${isMarked("$8")} ELSE ${leaveMark("$8")} END)
${unlessThere}
RETURNING 1 AS recorded`;
  return {
    markTransaction,

    /**
     * Waits up to lock_timeout for another transaction that inserts the same identity. If that one
     * commits, this inserts nothing and the transaction stays usable (under REPEATABLE READ it
     * fails with 40001); if it rolls back, this inserts. Plain values, which every driver and ORM
     * can bind. If we die right after it, the row does not exist. Mark and check as in the INSERT
     * of enqueue.
     */
    record: (row, { asked, isOwn, mark }) => {
      const { attempt, consumer, handledBy, key, messageId, topic, type } = row;
      const params = [consumer, type, key, topic, messageId, attempt, handledBy];
      return isOwn === true
        ? { name: "recordHandling", text: recordOwn, params }
        : { name: "recordHandlingWithin", text: recordWithin, params: [...params, mark, asked] };
    },

    /** No lock: the row is committed and too young to be forgotten. */
    readHandling: ({ consumer, type, key }, { isOwn, mark }) => ({
      name: isOwn === true ? "readHandling" : "readHandlingWithin",
      text: `SELECT ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid, attempt AS attempt
FROM ${table} WHERE consumer = $1 AND message_type = $2 AND message_key = $3${
        isOwn === true ? "" : `\nUNION ALL SELECT NULL, NULL, NULL, NULL WHERE NOT ${isMarked("$4")}`
      }`,
      params: isOwn === true ? [consumer, type, key] : [consumer, type, key, mark],
    }),

    /**
     * Locks and deletes the oldest rows, skipping those of a parallel call. By place, which cannot
     * change under the lock; by identity the planner would read the whole table. If we die right
     * after it, either all of them are gone or none.
     */
    forgetHandlings: ({ olderThanMs, limit }) => ({
      name: "forgetHandlings",
      text: `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE handled_at < ${NOW} - $1::bigint * interval '1 millisecond'
  ORDER BY handled_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED))`,
      params: [olderThanMs, limit],
    }),

    // Uses the index on the time: only rows of the same millisecond are sorted.
    readHandlings({ after, consumer, fromMs, limit, toMs }) {
      const place = after === undefined ? fromMs : Date.parse(after.handledAt);
      const behind = `NOT (handled_at = to_timestamp($1::float8 / 1000) AND (consumer, message_type, message_key) <= ($4::text, $5::text, $6::text))`;
      return {
        name: after === undefined ? "readHandlings" : "readHandlings.next",
        text: `SELECT consumer, message_type AS type, message_key AS key, ${isoText("handled_at")} AS handledat, handled_by AS handledby, message_id AS messageid
FROM ${table}
WHERE handled_at >= to_timestamp($1::float8 / 1000) AND handled_at < to_timestamp($2::float8 / 1000)
  AND ($3::text IS NULL OR consumer = $3::text)${after === undefined ? "" : `\n  AND ${behind}`}
ORDER BY handled_at, consumer, message_type, message_key LIMIT ${limit}`,
        params: [
          place,
          toMs,
          consumer ?? null,
          ...(after === undefined ? [] : [after.consumer, after.type, after.key]),
        ],
      };
    },

    schema: {
      ...schemaStatements(createNames(layout)),
      migrations: [{ version: 1, name: "inbox", statements: inboxTable(table, layout.table) }],
    },
  };
}

function inboxTable(table: string, name: string): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  consumer varchar(64) COLLATE "C" NOT NULL,
  message_type varchar(128) COLLATE "C" NOT NULL,
  message_key varchar(255) COLLATE "C" NOT NULL,
  topic varchar(255),
  message_id varchar(255),
  attempt integer,
  handled_by varchar(128) NOT NULL,
  handled_at timestamptz(3) NOT NULL,
  PRIMARY KEY (consumer, message_type, message_key)
)`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${name}_at`.slice(-63))} ON ${table} (handled_at)`,
    `COMMENT ON TABLE ${table} IS 'messages that consumers have handled'`,
    `COMMENT ON COLUMN ${table}.message_id IS 'what the broker calls the copy that was handled'`,
    `COMMENT ON COLUMN ${table}.attempt IS 'claim of the relay that the copy comes from'`,
    `COMMENT ON COLUMN ${table}.handled_by IS 'host and process'`,
  ];
}
