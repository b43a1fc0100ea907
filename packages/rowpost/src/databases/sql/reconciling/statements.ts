/**
 * Reconciling: the operator's queries, existing identities, and consumers' reports, in read-only
 * transactions on one snapshot. No locks, and no bodies.
 */
import { by, bytesOf, type Cold, cold, iso, part, plain, type Sql, textOf, withKeys } from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";

export interface WrappedQuery {
  readonly text: string;
  /** It returns message_type beside message_key. */
  readonly typed: boolean;
  readonly limit: number;
}

/** Indexes on type and key of the tables that `rowpost migrate` makes. */
const IDENTITY_INDEX = { messages: "uk_type_key", archive: "idx_type_key" };

/**
 * The query is the table of a SELECT, so it can only be a SELECT, and every driver returns its keys
 * as text.
 */
function queried({ text, typed }: WrappedQuery): Sql {
  return part`SELECT ${typed ? textOf("q.message_type") : part`NULL`} AS message_type, ${textOf("q.message_key")} AS message_key FROM (
${plain(text)}
) AS q`;
}

/**
 * Aliases: message_type (NULL unless typed), message_key. The limit is a parameter, so that
 * PostgreSQL accepts exactly one statement.
 */
export function userRows(query: WrappedQuery): Cold {
  return cold("userRows")`${queried(query)} LIMIT ${query.limit}`;
}

/**
 * Aliases: message_type, message_key, times. Rows that occur more than once, byte for byte: a
 * collation may equate different keys.
 */
export function repeatedRows(query: WrappedQuery): Cold {
  return cold(
    "repeatedRows",
  )`SELECT MIN(r.message_type) AS message_type, MIN(r.message_key) AS message_key, COUNT(*) AS times
FROM (${queried(query)}) AS r WHERE r.message_key IS NOT NULL
GROUP BY ${bytesOf("r.message_type")}, ${bytesOf("r.message_key")} HAVING COUNT(*) > 1 LIMIT ${query.limit}`;
}

/**
 * Aliases: message_type, message_key as stored, of rows with this type and one of these keys, by
 * the columns' collation. One lookup per key in a covering index, named because MySQL with
 * statistics from a small table walks all of it.
 */
export function existing(
  { column, companions, layout, messages }: MessageTable,
  { archived, keys, type }: { readonly type: string; readonly keys: readonly string[]; readonly archived: boolean },
): Cold {
  const place = archived ? "archive" : "messages";
  const table = archived ? companions.archive : messages;
  const from = part`${table} AS m${archived || layout.name === "default" ? by(IDENTITY_INDEX[place]) : part``}`;
  const [typeColumn, key] = [column("messageType"), column("messageKey")];
  return cold(`existing.${place}`)`SELECT ${typeColumn} AS message_type, ${key} AS message_key
${withKeys({ from, where: part`${typeColumn} = ${type}`, key, keys })}`;
}

/**
 * Aliases: message_type message_key consumer reason times first_at last_at (ISO texts), of
 * confirmations of unknown messages. Latest first.
 */
export function readUnknown({ companions, key }: MessageTable, limit: number): Cold {
  return cold(
    "readUnknown",
  )`SELECT u.message_type AS message_type, u.message_key AS message_key, u.consumer AS consumer, u.reason AS reason, u.times AS times,
  ${iso("u.first_at")} AS first_at, ${iso("u.last_at")} AS last_at
FROM ${companions.unmatched} AS u WHERE u.table_name = ${key}
ORDER BY u.last_at DESC, u.message_type, u.message_key, u.consumer LIMIT ${limit}`;
}
