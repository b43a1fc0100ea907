/**
 * What the statements of this dialect are written with, beside the names of sql/sql-names.ts. `m`
 * is the message row in every statement.
 */
import type { Fence, RowToken } from "../../relay/store.ts";
import type { LayoutColumns, TableLayout } from "../sql/layout.ts";
import { likePattern, type OwnTopics } from "../sql/own-topics.ts";
import { createSqlNames, literal, type SqlNames } from "../sql/sql-names.ts";

/**
 * The database's clock. STABLE (an index can be searched with it) and, unlike now(), not that of
 * the transaction's beginning.
 */
export const NOW = "statement_timestamp()";

/** Shards of a table; the expression in `shard` yields 0 to 15. */
export const SHARDS = 16;

/** Names and expressions of one layout. */
export interface Names extends SqlNames {
  /**
   * An instant as a session of the user's has to write it into this column. A table of one's own
   * may have `timestamp` there, which takes the wall clock of the session's zone: as a text it is
   * read by the column's own type, which leaves the zone out, and so is UTC in both. It costs 3 us
   * a value.
   */
  written(column: keyof LayoutColumns, instant: string): string;
  /**
   * Shard of row `m`: the hash of the ordering key, else of the message key, by its bytes (rule:
   * exact-bytes).
   */
  readonly shard: string;
}

/** Names and expressions for a layout. */
export function createNames(layout: TableLayout, topics?: OwnTopics): Names {
  const names = createSqlNames(layout, topics, {
    now: NOW,
    after,
    instant,
    // GREATEST passes over NULL.
    later: (left, right) => `GREATEST(${left}, ${right})`,
    whole: (column) => column,
    count: (column) => column,
    next: (version) => `${version} + 1`,
    isOfTopic: (topic, pattern) => `${topic}::text COLLATE "C" LIKE ${literal(likePattern(pattern))} ESCAPE '!'`,
    // Two hashes of 64 bits: in an array they cost the client 0.1 us a row, type and key 0.6.
    identityHash: (type, key) => `hashtextextended(${bytesOf(type)}, hashtextextended(${bytesOf(key)}, 0))`,
    stored: (column, type) =>
      type === "json" ? `${column}::text` : type === "binary" ? `encode(${column}, 'base64')` : column,
  });
  const { messageKey, orderingKey } = names.column;
  // '': a row without a key is somebody's too, who makes it failed.
  const hashed = `COALESCE(${orderingKey === undefined ? "" : `m.${orderingKey}, `}m.${messageKey}, '')`;
  const written = (property: keyof LayoutColumns, instant: string): string => {
    const column = layout.columns[property];
    if (layout.name === "default" || column === undefined) return instant;
    const utc = `to_char((${instant}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    return `(json_populate_record(NULL::${names.table}, json_build_object(${literal(column)}, ${utc}))).${names.column[property]}`;
  };
  return { ...names, written, shard: `(hashtext(${hashed} COLLATE "C") & ${SHARDS - 1})` };
}

/** By its bytes, also where the column is of another type than text or its collation folds. */
function bytesOf(column: string): string {
  return `COALESCE(${column}::text, '') COLLATE "C"`;
}

/** `timestamp + milliseconds`. */
export function after(ms: string): string {
  return `${NOW} + ${ms} * interval '1 millisecond'`;
}

/**
 * Condition that row `m` (or `row`) is pending, in words that only the index on waiting rows by
 * topic has. With `state = …` the planner may take an index on the waiting rows of all topics for
 * it, when its statistics are from a time when they were few, and walk a million rows of one topic
 * to find those of another.
 */
export function isWaiting(names: Names, row = "m."): string {
  const { column, layout } = names;
  const same = typeof layout.states.pending === "number" ? "+ 0" : "|| ''";
  return `(${row}${column.state} ${same}) = ${names.state("pending")}`;
}

/** An instant from a text of sql/behind.ts: UTC, whatever the zone of the session is. */
export function instant(text: string): string {
  return `(${text} || 'Z')::timestamptz`;
}

/**
 * Instant as ISO 8601 UTC text with milliseconds; `infinity` and `-infinity`, for which to_char is
 * NULL, as they are.
 */
export function isoText(instant: string): string {
  return `COALESCE(to_char(${instant} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (${instant})::text)`;
}

/**
 * Whole milliseconds between two instants, NULL where one is infinite. date_part gives a float8,
 * which is several times cheaper than extract's numeric.
 */
export function msBetween(from: string, to: string): string {
  return `CASE WHEN isfinite(${from}) AND isfinite(${to}) THEN (date_part('epoch', ${to} - ${from}) * 1000)::bigint END`;
}

/**
 * Whole milliseconds since an instant of a row: 0 where it lies ahead. Another program may have
 * written an infinite one, which no interval and no bigint can hold: subtracted as instants, one
 * such row failed the statement, and with it every good row beside it. As float8 it is infinite
 * too, and is cut to what a number of JavaScript holds.
 */
export function msSince(instant: string): string {
  const ms = `(date_part('epoch', ${NOW}) - date_part('epoch', ${instant})) * 1000`;
  return `LEAST(GREATEST(${ms}, 0), ${Number.MAX_SAFE_INTEGER})::bigint`;
}

/** Whole numbers (decimal strings or numbers; null = NULL) as an array parameter. */
export function numberArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

/**
 * Texts as an array parameter. Measured for 500 rows of five columns: arrays written like this 0.30
 * us of client CPU a row, the driver's own serializer 0.55, multi-row VALUES 0.60, one JSON text
 * 0.33; on the server 0.53, 0.53, 0.50 and 0.93.
 *
 * Where nothing has to be escaped but quotes and backslashes, JSON and an array literal are the
 * same inside the brackets, and one call writes them all: 0.66 us for a body of 400 characters, one
 * by one 3.7.
 */
export function textArray(values: readonly (string | null)[]): string {
  if (!values.some((value) => value !== null && ESCAPED_BY_JSON_ALONE.test(value))) {
    return `{${JSON.stringify(values).slice(1, -1)}}`;
  }
  return `{${values.map((value) => (value === null ? "NULL" : `"${value.replace(/["\\]/g, "\\$&")}"`)).join(",")}}`;
}

/** Control characters, and surrogates, half of which may be missing. */
const ESCAPED_BY_JSON_ALONE = /[^\x20-\ud7ff\ue000-\uffff]/;

/**
 * `WITH fence AS …`: the shards of this owner at these epochs, their lease rows locked until the
 * statement has committed (rule: takeover-fence). It takes the parameters $1 owner, $2 shards, $3
 * epochs.
 *
 * Why a takeover cannot slip in between: it locks the lease row FOR UPDATE and waits for us (any
 * UPDATE of `epoch` does, because it is in the primary key); and if it came first, our lock waits
 * for it, then looks at the row again as it is now and leaves it out, and the join with `fence` has
 * nothing to change. MATERIALIZED, and read before any message row: a row comes out of the join
 * only after its lease row has been locked.
 *
 * Why FOR KEY SHARE and not FOR SHARE: a renewal changes lease_until alone. With FOR SHARE, claims
 * and settles that overlap keep the row share-locked without a gap, newcomers join in, and the
 * renewal waits: measured with three busy sessions 15 to 430 ms, unbounded, against 1 to 2 ms with
 * FOR KEY SHARE, which a renewal does not conflict with.
 */
export function fenceClause(names: Names): string {
  return `WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM ${names.shardTable} lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = ${names.leaseKey} AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)`;
}

/**
 * Parameters of {@link fenceClause}, for the shards of these rows only: what is not touched need
 * not be locked.
 */
export function fenceParams(
  fence: Fence,
  rows: readonly { readonly shard: number }[],
): readonly [string, string, string] {
  const shards: number[] = [];
  const epochs: string[] = [];
  const wanted = new Set(rows.map((row) => row.shard));
  fence.epochs.forEach((epoch, shard) => {
    if (epoch === undefined || !wanted.has(shard)) return;
    shards.push(shard);
    epochs.push(epoch);
  });
  return [fence.owner, numberArray(shards), numberArray(epochs)];
}

/**
 * Parameters that name rows: ids, shards, versions, identityHashs. Sorted by id, so that statements
 * that meet lock rows in one order.
 */
export function tokenParams(rows: readonly RowToken[]): readonly [string, string, string, string] {
  return [
    numberArray(rows.map((row) => row.id)),
    numberArray(rows.map((row) => row.shard)),
    numberArray(rows.map((row) => row.lockVersion)),
    numberArray(rows.map((row) => row.identityHash)),
  ];
}

/**
 * The rows of {@link tokenParams}, which are $4 to $7. `more`: casts of further parameters, by the
 * name of their column.
 */
export function tokenSource(alias: string, more: Readonly<Record<string, string>> = {}): string {
  const arrays = ["$4::bigint[]", "$5::integer[]", "$6::bigint[]", "$7::bigint[]", ...Object.values(more)];
  const columns = ["id", "shard", "token", "identity_hash", ...Object.keys(more)];
  return `unnest(${arrays.join(", ")}) AS ${alias} (${columns.join(", ")})`;
}

/** Condition of a row in no known state; in the same words as the index. */
export function unknownState(names: Names): string {
  return `(${names.column.state} IN (${names.knownStates})) IS NOT TRUE`;
}
