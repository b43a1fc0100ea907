/**
 * What the statements of this dialect are written with, beside the names of sql/sql-names.ts. `m`
 * is the message row in every statement.
 *
 * An instant is a text `YYYY-MM-DD HH:MM:SS.SSS` in UTC: people can read it, it sorts and indexes
 * as it stands, and it compares rightly with what CURRENT_TIMESTAMP and datetime('now', …) give,
 * which is how other programs date the rows that they insert. The clock is the machine's, asked by
 * SQL inside the statement.
 */
import type { MessageState } from "../../message/states.ts";
import type { Fence, RowToken } from "../../relay/store.ts";
import type { TableLayout } from "../sql/layout.ts";
import { createSqlNames, type SqlNames } from "../sql/sql-names.ts";

/** Now; the same instant wherever it stands in one statement. */
export const NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

/**
 * One writer at a time for the whole file: a second relay could add nothing (rule: sqlite-handle).
 * The one shard is 0.
 */
export const ONE_SHARD = 1;

/** Names and expressions of one layout. A schema is an attached database. */
export interface Names extends SqlNames {
  /**
   * Condition on the state of a row `m` that is found by its id. The `+` keeps the index on the
   * state out of it: without, SQLite walks every row in that state and looks through the whole
   * batch for each. Measured, 500 of 20,000 waiting rows: 16.7 s, with it 12 ms.
   */
  isIn(...states: readonly MessageState[]): string;
}

/** Names and expressions for a layout. */
export function createNames(layout: TableLayout): Names {
  const names = createSqlNames(layout, {
    now: NOW,
    after,
    instant: (text) => text,
    later: (left, right) => `max(COALESCE(${left}, ''), ${right})`,
  });
  return { ...names, isIn: (...states) => `+m.${names.column.state} IN (${names.state(...states)})` };
}

/** Now plus milliseconds; NULL when they are NULL. */
export function after(ms: string): string {
  return `strftime('%Y-%m-%d %H:%M:%f', 'now', (${ms} / 1000.0) || ' seconds')`;
}

/** Now minus milliseconds. */
export function before(ms: string): string {
  return after(`-${ms}`);
}

/**
 * Instant as ISO 8601 UTC text with milliseconds; also of instants that another program wrote in
 * any form that SQLite reads.
 */
export function isoText(instant: string): string {
  return `strftime('%Y-%m-%dT%H:%M:%fZ', ${instant})`;
}

/** Whole milliseconds since an instant; a julian day holds them exactly enough (0.04 ms). */
export function msSince(instant: string): string {
  return `CAST(round((julianday('now') - julianday(${instant})) * 86400000.0) AS INTEGER)`;
}

/**
 * Condition that this owner holds the shard at this epoch; parameters: owner, epoch. A sub-query is
 * fence enough here, where elsewhere it is not (rule: takeover-fence): SQLite has one writer at a
 * time for the whole file, so nothing can change between this look and the write that it guards.
 * There is one shard (rule: sqlite-handle).
 */
export function fenceCondition(names: Names): string {
  return `EXISTS (SELECT 1 FROM ${names.shardTable} WHERE table_name = ${names.tableKey} AND shard = 0 AND owner = ? AND epoch = ?)`;
}

/** Parameters of {@link fenceCondition}; no epoch is -1, which no lease row has. */
export function fenceParams(fence: Fence): readonly [string, number] {
  return [fence.owner, fence.epochs[0] ?? -1];
}

/**
 * Rows as one JSON parameter, an array of arrays: a text of its own for each batch size would have
 * to be parsed each time. Ids are decimal strings and go in as JSON numbers, which SQLite reads as
 * 64-bit integers.
 */
export function jsonRows<Row extends { readonly id: string }>(
  rows: readonly Row[],
  more: (row: Row) => readonly unknown[],
): string {
  return `[${rows.map((row) => `[${row.id},${JSON.stringify(more(row)).slice(1, -1)}]`).join(",")}]`;
}

/** Ids as a JSON parameter. */
export function jsonIds(ids: readonly string[]): string {
  return `[${ids.join(",")}]`;
}

/** Rows [id, token] of {@link tokenSource}. */
export function tokenRows(names: Names, rows: readonly RowToken[]): string {
  return jsonRows(rows, (row) => [names.tokenOf(row)]);
}

/** `FROM` source of {@link tokenRows}: one parameter. */
export const TOKEN_SOURCE = "(SELECT value ->> 0 AS id, value ->> 1 AS token FROM json_each(?))";
