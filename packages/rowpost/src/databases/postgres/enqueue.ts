/** The INSERT in the user's transaction, and what explains or undoes it. */
import { bareType, bytesOf } from "../../message/binary-body.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import type { Statement } from "../../transactions/executor.ts";
import { enqueueCalls } from "../sql/calls.ts";
import type { TableLayout } from "../sql/layout.ts";
import { tableKey } from "../sql/layouts.ts";
import { present } from "../sql/message-columns.ts";
import { literal } from "../sql/sql-names.ts";
import type { EnqueueStatements } from "../sql/statements.ts";
import { type Names, NOW } from "./names.ts";

/** Statements of the message writer. */
export function enqueueStatements(names: Names): EnqueueStatements {
  const { table, column } = names;
  const wanted = "json_to_recordset($1::text::json) AS wanted (type text, key text)";
  const same = `m.${column.messageType} = wanted.type AND m.${column.messageKey} = wanted.key`;
  return {
    ...enqueueCalls(
      {
        insert: insertText(names),
        // No lock: that would need the UPDATE privilege, which who only enqueues has no use for.
        findIdentities: `SELECT ${identity(names, "m.")}
FROM ${wanted}
JOIN ${table} m ON ${same}
UNION ALL SELECT NULL, NULL WHERE NOT ${MARKED}`,
        // Locks rows that this transaction has inserted.
        deleteIdentities: `DELETE FROM ${table} m USING ${wanted} WHERE ${MARKED} AND ${same}`,
      },
      {
        identity: ({ type, key }) => ({ type, key }),
        message: (message) => insertedRow(names, message),
        check: ({ asked, mark }, name) => (name === "insert" ? [mark, asked] : [mark]),
      },
    ),
    markTransaction,
  };
}

/**
 * A setting that the server takes back at the end of the transaction, and at a rollback to a
 * savepoint from before it.
 */
const MARK = "rowpost.tx";
const MARKS = `COALESCE(current_setting('${MARK}', true), '')`;
/** Is this the transaction with the mark in this parameter? */
export function isMarked(mark: string): string {
  return `strpos(${MARKS}, ${mark}::text || ' ') > 0`;
}

/**
 * True, and the transaction has the mark in this parameter from now on, beside those of the last
 * 300 calls or more: several may go on in it at once.
 */
export function leaveMark(mark: string): string {
  return `${withMark(`${mark}::text`)} <> ''`;
}

function withMark(mark: string): string {
  return `set_config('${MARK}', left(${mark} || ' ' || ${MARKS}, 8000), true)`;
}

const MARKED = isMarked("$2");

export function markTransaction(mark: string): Statement {
  return {
    name: "markTransaction",
    // With a parameter postgres.js would keep the INSERT back for the answer.
    text: `SELECT ${withMark(literal(mark))}`,
    params: [],
  };
}

/**
 * In one type and collation, whatever the columns have or get: a prepared statement whose result is
 * of another type after an ALTER TABLE is refused for as long as its connection lives.
 */
function identity({ column }: Names, row = ""): string {
  const same = (name: string): string => `${row}${name}::text COLLATE "C"`;
  return `${same(column.messageType)} AS messagetype, ${same(column.messageKey)} AS messagekey`;
}

/**
 * A name that is absent reads as NULL: what is null is left out, which spares both sides its text.
 * A JSON body as a nested value instead of a text in the text was tried and gained nothing: the
 * join of the parts costs what the escaping does.
 */
function insertedRow({ layout }: Names, message: EncodedMessage): Readonly<Record<string, unknown>> {
  const { type, key, topic, createdBy } = message;
  const isBinary = layout.bodyType === "binary";
  const body = isBinary ? bytesOf(message).toString("base64") : message.body;
  const contentType = isBinary ? bareType(message) : message.contentType;
  const row: Record<string, unknown> = { type, key, topic, body, created_by: createdBy };
  if (message.headers !== null) row["headers"] = message.headers;
  if (contentType !== null) row["content_type"] = contentType;
  if (message.orderingKey !== null) row["ordering_key"] = message.orderingKey;
  if (message.delayMs !== null) row["delay_ms"] = message.delayMs;
  if (message.deliverAtMs !== null) row["deliver_at_ms"] = message.deliverAtMs;
  return row;
}

/**
 * Channel that an enqueue notifies and a relay listens on. At most 63 bytes, or LISTEN would cut it
 * and NOTIFY refuse it.
 */
export function channelOf(layout: TableLayout): string {
  const channel = `rowpost.${tableKey(layout)}`;
  return Buffer.byteLength(channel) <= 63
    ? channel
    : `rowpost.${(hashOf(channel) >>> 0).toString(16).padStart(8, "0")}`;
}

/** FNV-1a as a signed 32-bit integer. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash | 0;
}

/**
 * Rings for relays of other processes, once per transaction, delivered at its commit. The commits
 * of transactions that notify are done one by one in the whole database cluster, each waiting for
 * the disk of the one before: with 8 connections 570 transactions a second instead of 1,850. So of
 * the transactions that enqueue at the same time only one notifies: the one that gets an advisory
 * lock, 1,740 a second. What the others enqueue is found by the polls after the ring, which follow
 * close on each other while there is something to do.
 *
 * The lock's key is of the 50 ms in which the transaction began, so that one which stays open for
 * minutes silences nobody but those of its own beginning, and holds one lock however long it
 * enqueues: with a key of each statement's time a job of 11 minutes held 12,632, and the server's
 * lock table was full. Its later calls get the lock again and notify again, which the server drops
 * as repeated; after a rollback to a savepoint, which takes lock and notification back, they do
 * both anew.
 */
export function ringOn(channel: string, payload = "''"): string {
  const window = "((date_part('epoch', transaction_timestamp()) * 20)::bigint % 2147483647)::integer";
  return `(SELECT CASE WHEN pg_try_advisory_xact_lock(${hashOf(channel)}, ${window})
    THEN pg_notify(${literal(channel)}, ${payload}) IS NULL END)`;
}

/** A json goes into a column of jsonb as well. */
const BODIES: Readonly<Record<TableLayout["bodyType"], string>> = {
  text: "incoming.body",
  json: "incoming.body::json",
  binary: "decode(incoming.body, 'base64')",
};

/**
 * One statement for any number of messages, one text for all of them: it can be prepared, and needs
 * no escaping of bodies. Measured with 100 messages of 400 bytes, not prepared: this 2.5 us of
 * client CPU a row, 1.1 ms in all; multi-row VALUES 2.5 us and 1.4 ms (its text has to be parsed
 * anew for every size); unnest of text arrays 6 to 8 us and 1.5 ms. With one message it is as fast
 * as plain VALUES (0.16 against 0.15 ms).
 *
 * `$1::text::json` and not `$1::json`: postgres.js would make JSON of the text again. ids in the
 * order of the array, because the function scan feeds the identity column in that order. A
 * duplicate is left out, the transaction stays usable, and the caller sees it by its absence. Waits
 * only for another transaction that inserts the same identity. If the transaction does not commit,
 * nothing of it was there.
 *
 * $2 is the mark of the call. With $3 the transaction must have it already, else nothing is
 * inserted: the INSERT of a call that nobody awaits may come behind the ROLLBACK. Without $3 it is
 * the first statement of the call, in its place by the order of the driver, and leaves the mark for
 * those after it. A sub-query, so that it is done once, before the first row.
 */
function insertText(names: Names): string {
  const { column, table, layout } = names;
  const deliverAt = `CASE WHEN incoming.deliver_at_ms IS NOT NULL THEN to_timestamp(incoming.deliver_at_ms / 1000.0)
    ELSE ${NOW} + incoming.delay_ms * interval '1 millisecond' END`;
  const fields = present([
    [column.messageType, "incoming.type"],
    [column.messageKey, "incoming.key"],
    [column.topic, "incoming.topic"],
    [column.messageBody, BODIES[layout.bodyType]],
    [column.headers, layout.headersType === "json" ? "incoming.headers::json" : "incoming.headers"],
    [column.contentType, "incoming.content_type"],
    [column.orderingKey, "incoming.ordering_key"],
    [column.state, names.state("pending")],
    [column.deliverAt, names.written("deliverAt", deliverAt)],
    [column.nextRetryAt, names.written("nextRetryAt", deliverAt)],
    [column.createdBy, "incoming.created_by"],
    [column.updatedBy, "incoming.created_by"],
    [column.gmtCreate, names.written("gmtCreate", NOW)],
    [column.gmtModified, names.written("gmtModified", NOW)],
  ]);
  return `WITH inserted AS (
  INSERT INTO ${table} (${fields.map(([name]) => name).join(", ")})
  SELECT ${fields.map(([, value]) => value).join(",\n    ")}
  FROM json_to_recordset($1::text::json) AS incoming (type text, key text, topic text, body text, headers text, content_type text,
    ordering_key text, delay_ms bigint, deliver_at_ms bigint, created_by text)
  WHERE (SELECT CASE WHEN $3::boolean THEN ${MARKED} ELSE ${leaveMark("$2")} END)
  ON CONFLICT (${column.messageType}, ${column.messageKey}) DO NOTHING
  RETURNING ${identity(names)})
SELECT messagetype, messagekey, ${ringOn(channelOf(layout))} AS rung FROM inserted`;
}
