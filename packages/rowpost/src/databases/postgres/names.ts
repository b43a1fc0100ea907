/**
 * Names and expressions of this dialect, beside sql/sql-names.ts. `m` is the message row in every
 * statement.
 */
import type { Fence, RowToken } from "../../relay/store.ts";
import type { LayoutColumns, TableLayout } from "../sql/layout.ts";
import { likePattern, type OwnTopics } from "../sql/own-topics.ts";
import { createSqlNames, literal, type SqlNames } from "../sql/sql-names.ts";

/**
 * The database's clock. STABLE, so an index can be searched with it, and unlike now() not fixed at
 * the transaction's start.
 */
export const NOW = "statement_timestamp()";

/** Shards of a table; the expression in `shard` yields 0 to 15. */
export const SHARDS = 16;

export interface Names extends SqlNames {
  /**
   * An instant written in a user's session. A user's own table may use `timestamp`, which takes the
   * session's wall clock; passed as text, the column's type ignores the zone, so both types store
   * UTC. Costs 3 us a value.
   */
  written(column: keyof LayoutColumns, instant: string): string;
  /**
   * Shard of row `m`: hash of the bytes of the ordering key, else of the message key (rule:
   * exact-bytes).
   */
  readonly shard: string;
}

export function createNames(layout: TableLayout, topics?: OwnTopics): Names {
  const names = createSqlNames(layout, topics, {
    now: NOW,
    after,
    instant,
    // GREATEST ignores NULL.
    later: (left, right) => `GREATEST(${left}, ${right})`,
    whole: (column) => column,
    count: (column) => column,
    next: (version) => `${version} + 1`,
    isOfTopic: (topic, pattern) => `${topic}::text COLLATE "C" LIKE ${literal(likePattern(pattern))} ESCAPE '!'`,
    // Two hashes of 64 bits. In an array they cost the client 0.1 us a row; type and key cost 0.6.
    identityHash: (type, key) => `hashtextextended(${bytesOf(type)}, hashtextextended(${bytesOf(key)}, 0))`,
    stored: (column, type) =>
      type === "json" ? `${column}::text` : type === "binary" ? `encode(${column}, 'base64')` : column,
  });
  const { messageKey, orderingKey } = names.column;
  // '': a row without a key needs an owner too, which fails it.
  const hashed = `COALESCE(${orderingKey === undefined ? "" : `m.${orderingKey}, `}m.${messageKey}, '')`;
  const written = (property: keyof LayoutColumns, instant: string): string => {
    const column = layout.columns[property];
    if (layout.name === "default" || column === undefined) return instant;
    const utc = `to_char((${instant}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    return `(json_populate_record(NULL::${names.table}, json_build_object(${literal(column)}, ${utc}))).${names.column[property]}`;
  };
  return { ...names, written, shard: `(hashtext(${hashed} COLLATE "C") & ${SHARDS - 1})` };
}

/** Uses the bytes even if the column is not text or its collation folds. */
function bytesOf(column: string): string {
  return `COALESCE(${column}::text, '') COLLATE "C"`;
}

export function after(ms: string): string {
  return `${NOW} + ${ms} * interval '1 millisecond'`;
}

/**
 * Condition that row `m` (or `row`) is pending, worded so that only the index on waiting rows by
 * topic matches. With `state = …` and stale statistics the planner may walk a million waiting rows
 * of one topic to find another's.
 */
export function isWaiting(names: Names, row = "m."): string {
  const { column, layout } = names;
  const same = typeof layout.states.pending === "number" ? "+ 0" : "|| ''";
  return `(${row}${column.state} ${same}) = ${names.state("pending")}`;
}

/** Parses a text of sql/behind.ts as UTC, in any session zone. */
export function instant(text: string): string {
  return `(${text} || 'Z')::timestamptz`;
}

/**
 * Instant as ISO 8601 UTC text with milliseconds. Keeps `infinity` and `-infinity`, for which
 * to_char returns NULL.
 */
export function isoText(instant: string): string {
  return `COALESCE(to_char(${instant} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (${instant})::text)`;
}

/**
 * Whole milliseconds between two instants; NULL if one is infinite. date_part's float8 is several
 * times cheaper than extract's numeric.
 */
export function msBetween(from: string, to: string): string {
  return `CASE WHEN isfinite(${from}) AND isfinite(${to}) THEN (date_part('epoch', ${to} - ${from}) * 1000)::bigint END`;
}

/**
 * Whole milliseconds since an instant of a row, 0 for the future. Another program may write an
 * infinite instant, which neither interval nor bigint can hold: subtracting instants, one such row
 * failed the statement for all. float8 keeps infinity, which is capped at a safe JavaScript number.
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
 * Texts as an array parameter. For 500 rows of five columns: these arrays 0.30 us of client CPU a
 * row, the driver's own serializer 0.55, multi-row VALUES 0.60, one JSON text 0.33; on the server
 * 0.53, 0.53, 0.50 and 0.93.
 *
 * If only quotes and backslashes need escaping, one JSON call writes the array: 0.66 us for a body
 * of 400 characters, against 3.7 one by one.
 */
export function textArray(values: readonly (string | null)[]): string {
  if (!values.some((value) => value !== null && ESCAPED_BY_JSON_ALONE.test(value))) {
    return `{${JSON.stringify(values).slice(1, -1)}}`;
  }
  return `{${values.map((value) => (value === null ? "NULL" : `"${value.replace(/["\\]/g, "\\$&")}"`)).join(",")}}`;
}

/** Control characters and surrogates, which may be unpaired. */
const ESCAPED_BY_JSON_ALONE = /[^\x20-\ud7ff\ue000-\uffff]/;

/**
 * `WITH fence AS …`: this owner's shards at these epochs, their lease rows locked until the commit
 * (rule: takeover-fence). Parameters: $1 owner, $2 shards, $3 epochs.
 *
 * A takeover locks the lease row FOR UPDATE and waits for us, as does any UPDATE of `epoch`, a
 * primary key column. If it came first, our lock waits and then drops the row, so the join with
 * `fence` changes nothing. MATERIALIZED and read before any message row, so lease rows are locked
 * first.
 *
 * FOR KEY SHARE does not conflict with a renewal, which changes only lease_until. With FOR SHARE,
 * overlapping claims and settles make a renewal wait without bound: 15 to 430 ms with three busy
 * sessions, against 1 to 2 ms.
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
 * Parameters of {@link fenceClause}, for the shards of these rows only, so that no other lease row
 * is locked.
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
 * Parameters that identify rows: ids, shards, versions, identity hashes. Sorted by id, the lock
 * order.
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
 * The rows of {@link tokenParams}, which are $4 to $7. `more`: casts of further parameters, by
 * column name.
 */
export function tokenSource(alias: string, more: Readonly<Record<string, string>> = {}): string {
  const arrays = ["$4::bigint[]", "$5::integer[]", "$6::bigint[]", "$7::bigint[]", ...Object.values(more)];
  const columns = ["id", "shard", "token", "identity_hash", ...Object.keys(more)];
  return `unnest(${arrays.join(", ")}) AS ${alias} (${columns.join(", ")})`;
}

/** Condition for a row in no known state, worded like its index. */
export function unknownState(names: Names): string {
  return `(${names.column.state} IN (${names.knownStates})) IS NOT TRUE`;
}
