/**
 * A layout in MySQL's words: quoted names, literals of states, the clock and the few expressions that several statements share. Statements
 * stay whole in their own files; only what would be the same line in each of them stands here.
 *
 * The message row is always `m`, the shard's lease row `s`, the row of a JSON_TABLE `j`.
 */
import type { MessageState } from "../../message/states.ts";
import type { Fence, RowToken } from "../../outbox/relay-store.ts";
import type { LayoutColumns, TableLayout } from "../sql/layout.ts";
import { claimToken, companionTables, tableKey } from "../sql/layouts.ts";

/** Collation of identity columns: compares bytes and pads nothing (rule R7). Each server reads its own name and takes the other for a comment. */
export const BYTES_COLLATION = "/*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

/** Index of the default table on (ordering_key, state). */
export const ORDERING_KEY_INDEX = "idx_ordering_key_state";

/** Every server time below is `UTC_TIMESTAMP` in companion tables, whatever the clock of the message table is. */
export const COMPANION_NOW = "UTC_TIMESTAMP(3)";

export interface MysqlNames {
  readonly layout: TableLayout;
  /** Value of `table_name` in the companion tables. */
  readonly tableKey: string;
  readonly messages: string;
  /**
   * The message table joined by id. FORCE INDEX because in a table of a few rows, or with old statistics, the optimizer walks the whole table
   * instead, and then locks and waits for rows that the statement does not mean.
   */
  readonly byId: string;
  readonly archive: string;
  readonly shards: string;
  readonly relays: string;
  readonly suspensions: string;
  readonly migrations: string;
  /** `m.`column``; throws for a column that the layout lacks. */
  column(name: keyof LayoutColumns): string;
  has(name: keyof LayoutColumns): boolean;
  /** Column, or this expression where the layout has none, AS alias. */
  select(name: keyof LayoutColumns, alias: string, otherwise: string): string;
  state(state: MessageState): string;
  states(states: readonly MessageState[]): string;
  /** Now, by the clock and in the precision of the message table. */
  readonly now: string;
  /** Now in milliseconds, for comparing and subtracting. */
  readonly nowMs: string;
  /** The instant that many milliseconds from now (an SQL expression); never earlier, also where the column has whole seconds. */
  later(milliseconds: string): string;
  /** The instant that many milliseconds ago. */
  ago(milliseconds: number): string;
  /** An instant, or deliver_at when that is later (rule R10). */
  notBeforeDelivery(instant: string): string;
  /** The message's shard, from the bytes of its ordering key or message key. */
  readonly shardOf: string;
  /** Value for next_retry_at of a row that may go at once: deliver_at when that is still ahead (rule R10), else NULL. */
  readonly atOnce: string;
  /** Instant as ISO 8601 UTC text with milliseconds. */
  iso(expression: string): string;
  /** Epoch milliseconds of an instant of the message table. */
  epochMs(expression: string): string;
  /** An instant of the message table from epoch milliseconds. */
  fromEpochMs(expression: string): string;
  /** Rows of one call as a JSON array of arrays [id, shard, epoch, token, …more], sorted by id; rows of shards that are not held are left out. */
  fencedRows<Row extends RowToken>(fence: Fence, rows: readonly Row[], more?: (row: Row) => readonly unknown[]): string;
  /** Value of the claim token of a row, 0 where the layout has none. */
  tokenOf(row: Omit<RowToken, "shard">): number;
  /** `j` of fencedRows and `s`, joined and fenced; one `?` for the JSON, one for the table key, one for the owner. `more`: JSON_TABLE columns. */
  fencedSource(more?: string): string;
  /** `AND m.<token> = j.token`, or nothing where the layout has no claim token. */
  readonly tokenMatches: string;
  /** `, m.lock_version = …`, or nothing. */
  readonly bumpVersion: string;
  /** `, m.gmt_modified = now`. */
  readonly touch: string;
}

export function quoteName(name: string): string {
  return `\`${name}\``;
}

/** Our sessions set no NO_BACKSLASH_ESCAPES and names hold no backslash: doubling quotes is enough, also on a user's session. */
export function quoteText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

export function createNames(layout: TableLayout): MysqlNames {
  const columns = layout.columns;
  const companions = companionTables(layout);
  const qualify = (table: string): string =>
    layout.schema === undefined ? quoteName(table) : `${quoteName(layout.schema)}.${quoteName(table)}`;

  function column(name: keyof LayoutColumns): string {
    const found = columns[name];
    if (found === undefined) throw new Error(`the layout ${layout.name} has no column ${name}`);
    return `m.${quoteName(found)}`;
  }
  const has = (name: keyof LayoutColumns): boolean => columns[name] !== undefined;
  const select = (name: keyof LayoutColumns, alias: string, otherwise: string): string =>
    `${has(name) ? column(name) : otherwise} AS ${alias}`;

  function state(value: MessageState): string {
    const encoded = layout.states[value];
    return typeof encoded === "number" ? String(encoded) : quoteText(encoded);
  }

  const utc = layout.clock === "utc";
  const nowMs = utc ? "UTC_TIMESTAMP(3)" : "NOW(3)";
  const nowSeconds = utc ? "UTC_TIMESTAMP()" : "NOW()";
  const later = (milliseconds: string): string =>
    layout.fractionDigits === 3
      ? `${nowMs} + INTERVAL (${milliseconds}) * 1000 MICROSECOND`
      : // MySQL rounds a fraction to the nearest second and MariaDB cuts it off; the next whole second is never early on either.
        `${nowSeconds} + INTERVAL CEIL((MICROSECOND(${nowMs}) + (${milliseconds}) * 1000) / 1000000) SECOND`;

  const orderingKey = has("orderingKey")
    ? `COALESCE(${column("orderingKey")}, ${column("messageKey")})`
    : column("messageKey");
  const token = claimToken(layout);
  const tokenColumn = token === undefined ? undefined : `COALESCE(${column(token)}, 0)`;
  const tokenOf = (row: Omit<RowToken, "shard">): number => (token === undefined ? 0 : row[token]);
  const toUtc = (expression: string): string =>
    utc ? expression : `CONVERT_TZ(${expression}, @@session.time_zone, '+00:00')`;
  const epochStart = "TIMESTAMP'1970-01-01 00:00:00'";

  return {
    layout,
    tableKey: tableKey(layout),
    messages: qualify(layout.table),
    byId: `${qualify(layout.table)} AS m FORCE INDEX (PRIMARY)`,
    archive: qualify(companions.archive),
    shards: qualify(companions.shard),
    relays: qualify(companions.relay),
    suspensions: qualify(companions.suspension),
    migrations: qualify(companions.migration),
    column,
    has,
    select,
    state,
    states: (list) => list.map(state).join(", "),
    now: layout.fractionDigits === 3 ? nowMs : nowSeconds,
    nowMs,
    later,
    ago: (milliseconds) => `${nowMs} - INTERVAL ${whole(milliseconds)} * 1000 MICROSECOND`,
    notBeforeDelivery: (instant) =>
      has("deliverAt") ? `GREATEST(COALESCE(${column("deliverAt")}, ${instant}), ${instant})` : instant,
    shardOf: `CRC32(CONVERT(${orderingKey} USING utf8mb4)) % 16`,
    atOnce: has("deliverAt") ? `IF(${column("deliverAt")} > ${nowMs}, ${column("deliverAt")}, NULL)` : "NULL",
    iso: (expression) => `CONCAT(LEFT(DATE_FORMAT(${toUtc(expression)}, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')`,
    epochMs: (expression) => `TIMESTAMPDIFF(MICROSECOND, ${epochStart}, ${toUtc(expression)}) DIV 1000`,
    fromEpochMs: (expression) => {
      const instant = `${epochStart} + INTERVAL (${expression}) * 1000 MICROSECOND`;
      return utc ? instant : `CONVERT_TZ(${instant}, '+00:00', @@global.time_zone)`;
    },
    fencedRows(fence, rows, more) {
      const encoded: string[] = [];
      for (const row of inIdOrder(rows)) {
        const epoch = fence.epochs[row.shard];
        if (epoch === undefined) continue;
        const tail =
          more === undefined
            ? ""
            : more(row)
                .map((value) => `,${JSON.stringify(value)}`)
                .join("");
        encoded.push(`[${row.id},${row.shard},${epoch},${tokenOf(row)}${tail}]`);
      }
      return `[${encoded.join(",")}]`;
    },
    tokenOf,
    fencedSource: (more = "") =>
      "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]'" +
      `${more})) AS j\n  STRAIGHT_JOIN ${qualify(companions.shard)} AS s\n` +
      "    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch",
    tokenMatches: tokenColumn === undefined ? "" : `AND ${tokenColumn} = j.token`,
    bumpVersion: has("lockVersion") ? `, ${column("lockVersion")} = COALESCE(${column("lockVersion")}, 0) + 1` : "",
    touch: `, ${column("gmtModified")} = ${layout.fractionDigits === 3 ? nowMs : nowSeconds}`,
  };
}

/** Rows in the order of their ids: whoever locks several rows locks them in this order, so that two of us cannot wait for each other. */
export function inIdOrder<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  return [...rows].sort(byId);
}

/** Decimal strings in the order of their numbers. */
function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  if (left.id.length !== right.id.length) return left.id.length - right.id.length;
  return left.id < right.id ? -1 : left.id > right.id ? 1 : 0;
}

/** A whole number as a literal: LIMITs and lists of shards, so that the optimizer sees the value and no driver sends it as text. */
export function whole(value: number): string {
  return String(Math.max(0, Math.trunc(value)));
}
