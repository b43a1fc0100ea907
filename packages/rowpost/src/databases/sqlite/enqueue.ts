/**
 * The INSERT in the user's transaction, and the statements that explain or undo it. Works on SQLite
 * from 3.35 on.
 */
import { bareType, bytesOf } from "../../message/binary-body.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import { enqueueCalls } from "../sql/calls.ts";
import { present } from "../sql/message-columns.ts";
import type { EnqueueStatements } from "../sql/statements.ts";
import { after, type Names, NOW } from "./names.ts";

export function enqueueStatements(names: Names): EnqueueStatements {
  const { messageKey, messageType } = names.column;
  const wanted = `SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)`;
  const texts = {
    insert: insertText(names),
    findIdentities: `SELECT m.${messageType} AS messagetype, m.${messageKey} AS messagekey
FROM (${wanted}) AS wanted
JOIN ${names.table} AS m ON m.${messageType} = wanted.type AND m.${messageKey} = wanted.key`,
    deleteIdentities: `DELETE FROM ${names.table} WHERE (${messageType}, ${messageKey}) IN (${wanted})`,
  };
  return enqueueCalls(texts, {
    message: (message) => insertedRow(names, message),
    identity: ({ type, key }) => [type, key],
  });
}

/** In the order of the paths in {@link insertText}. */
function insertedRow({ layout }: Names, message: EncodedMessage): readonly unknown[] {
  const { type, key, topic, headers, orderingKey, delayMs, deliverAtMs, createdBy } = message;
  const isBinary = layout.bodyType === "binary";
  const body = isBinary ? bytesOf(message).toString("hex") : message.body;
  const contentType = isBinary ? bareType(message) : message.contentType;
  return [type, key, topic, body, headers, contentType, orderingKey, delayMs, deliverAtMs, createdBy];
}

/**
 * One text with one plain `?` for any number of messages, which every driver and ORM can bind. Ids
 * follow the array order. A duplicate is left out of the result, and the transaction stays usable.
 * Without a commit nothing was written.
 */
function insertText(names: Names): string {
  const { column, table } = names;
  const field = (place: number): string => `json_extract(value, '$[${place}]')`;
  const deliverAt = `COALESCE(strftime('%Y-%m-%d %H:%M:%f', ${field(8)} / 1000.0, 'unixepoch'), ${after(field(7))})`;
  const fields = present([
    [column.messageType, field(0)],
    [column.messageKey, field(1)],
    [column.topic, field(2)],
    // SQLite 3.41.
    [column.messageBody, names.layout.bodyType === "binary" ? `unhex(${field(3)})` : field(3)],
    [column.headers, field(4)],
    [column.contentType, field(5)],
    [column.orderingKey, field(6)],
    [column.state, names.state("pending")],
    [column.deliverAt, deliverAt],
    [column.nextRetryAt, deliverAt],
    [column.createdBy, field(9)],
    [column.updatedBy, field(9)],
    [column.gmtCreate, NOW],
    [column.gmtModified, NOW],
  ]);
  // "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
  return `INSERT INTO ${table} (${fields.map(([name]) => name).join(", ")})
SELECT ${fields.map(([, value]) => value).join(",\n  ")}
FROM json_each(?)
WHERE true
ON CONFLICT (${column.messageType}, ${column.messageKey}) DO NOTHING
RETURNING ${column.messageType} AS messagetype, ${column.messageKey} AS messagekey`;
}
