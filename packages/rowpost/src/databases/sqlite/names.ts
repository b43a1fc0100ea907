/**
 * Names and expressions of this dialect, beside sql/sql-names.ts. `m` is the message row in every
 * statement.
 *
 * An instant is a text `YYYY-MM-DD HH:MM:SS.SSS` in UTC, which sorts as it is and compares
 * correctly with CURRENT_TIMESTAMP and datetime('now', …) of other programs. SQL reads the
 * machine's clock inside the statement.
 */
import type { MessageState } from "../../message/states.ts";
import type { Fence, RowToken } from "../../relay/store.ts";
import type { TableLayout } from "../sql/layout.ts";
import type { OwnTopics } from "../sql/own-topics.ts";
import { createSqlNames, literal, type SqlNames } from "../sql/sql-names.ts";

/** Current time, constant within one statement. */
export const NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

/**
 * One writer at a time for the whole file: a second relay would add nothing (rule: sqlite-handle).
 * The one shard is 0.
 */
export const ONE_SHARD = 1;

/** Names and expressions of one layout. A schema is an attached database. */
export interface Names extends SqlNames {
  /**
   * Condition on the state of a row `m` found by its id. The `+` avoids the index on the state,
   * with which SQLite searches the whole batch for every row in that state. 500 of 20,000 waiting
   * rows: 16.7 s without, 12 ms with it.
   */
  isIn(...states: readonly MessageState[]): string;
}

export function createNames(layout: TableLayout, topics?: OwnTopics): Names {
  const names = createSqlNames(layout, topics, {
    now: NOW,
    after,
    instant: (text) => text,
    later: (left, right) => `max(COALESCE(${left}, ''), ${right})`,
    // A number over 64 bits would become a float and match no token.
    next: (version) => `CASE ${version} WHEN 9223372036854775807 THEN -9223372036854775808 ELSE ${version} + 1 END`,
    count: (column) => `min(${column}, ${Number.MAX_SAFE_INTEGER})`,
    whole: (column) => `CAST(${column} AS TEXT)`,
    // LIKE folds case here.
    isOfTopic: (topic, pattern) => `${topic} GLOB ${literal(pattern.replace(/[[?]/g, "[$&]"))}`,
    identityHash: (type, key) => `COALESCE(${type}, '') || char(10) || COALESCE(${key}, '')`,
    // A value has its own type, whatever the column's is.
    stored: (column, type) => (type === "text" ? column : `CAST(${column} AS ${type === "json" ? "TEXT" : "BLOB"})`),
  });
  return { ...names, isIn: (...states) => `+m.${names.column.state} IN (${names.state(...states)})` };
}

/** Now plus milliseconds; NULL if they are NULL. */
export function after(ms: string): string {
  return `strftime('%Y-%m-%d %H:%M:%f', 'now', (${ms} / 1000.0) || ' seconds')`;
}

export function before(ms: string): string {
  return after(`-${ms}`);
}

/**
 * Instant as ISO 8601 UTC text with milliseconds, from any form that SQLite reads, since other
 * programs write instants too.
 */
export function isoText(instant: string): string {
  return `strftime('%Y-%m-%dT%H:%M:%fZ', ${instant})`;
}

/** Whole milliseconds since an instant; a julian day is exact to 0.04 ms. */
export function msSince(instant: string): string {
  return `CAST(round((julianday('now') - julianday(${instant})) * 86400000.0) AS INTEGER)`;
}

/**
 * Condition that this owner holds the shard at this epoch. Parameters: owner, epoch. A sub-query is
 * enough (rule: takeover-fence), because SQLite has one writer at a time: nothing changes between
 * this check and the write it guards.
 */
export function fenceCondition(names: Names): string {
  return `EXISTS (SELECT 1 FROM ${names.shardTable} WHERE table_name = ${names.leaseKey} AND shard = 0 AND owner = ? AND epoch = ?)`;
}

/** Parameters of {@link fenceCondition}; no epoch is -1, which no lease row has. */
export function fenceParams(fence: Fence): readonly [string, string] {
  return [fence.owner, fence.epochs[0] ?? "-1"];
}

export function jsonIds(ids: readonly string[]): string {
  return `[${ids.join(",")}]`;
}

/**
 * Rows of {@link tokenSource} as one JSON parameter, an array of arrays, so that batch sizes share
 * one text. Ids and versions are decimal strings and become JSON numbers, which SQLite reads as
 * 64-bit integers.
 */
export function tokenRows<Row extends RowToken>(
  rows: readonly Row[],
  more: (row: Row) => readonly unknown[] = () => [],
): string {
  const encoded = rows.map(
    (row) => `[${row.id},${row.lockVersion},${JSON.stringify([row.identityHash, ...more(row)]).slice(1)}`,
  );
  return `[${encoded.join(",")}]`;
}

/** `FROM` source of {@link tokenRows}: one parameter. `more`: names of further values. */
export function tokenSource(...more: readonly string[]): string {
  const values = ["id", "token", "identity_hash", ...more].map((name, place) => `value ->> ${place} AS ${name}`);
  return `(SELECT ${values.join(", ")} FROM json_each(?))`;
}
