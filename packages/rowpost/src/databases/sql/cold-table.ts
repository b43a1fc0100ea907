/** A message table in an engine's words, for shared statements (cold.ts). */
import type { MessageState } from "../../message/states.ts";
import { type Clock, part, plain, type Sql, type Words } from "./cold.ts";
import type { FindRequest } from "./insight/requests.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import type { CompanionTables } from "./layout-names.ts";
import { companionTables, ENGINE_COLUMNS, tableKey } from "./layouts.ts";
import { literal, stateLiteral } from "./sql-names.ts";

export interface TableWords {
  /** Without columns that the engine lacks. */
  readonly layout: TableLayout;
  readonly words: Words;
  /** The message table's clock, if it differs from that of its companions. */
  readonly clock?: Clock | undefined;
  /** Approximate number of messages; NULL if unknown. */
  readonly rows: string;
  readonly shard: string;
  /** ` AND …` or "": row `m` belongs to a topic of these relays. */
  readonly ofTopics: string;
  /** Body and headers of row `m` as they are read. */
  readonly stored: { readonly messageBody: string; readonly headers: string | undefined };
  /** The statement `find` (insight/find.ts); `where` leaves out the states. */
  readonly page: (table: MessageTable, request: FindRequest, where: readonly Sql[]) => Sql;
  /** Conditions for the rows of a state, one per index; default: the state alone. */
  readonly waysTo?: (table: MessageTable, state: MessageState) => readonly Way[];
}

export interface Way {
  readonly where: Sql;
  /** The index is in id order. */
  readonly inIdOrder: boolean;
}

/** The message table, whose row is `m` in every statement, and its companions. */
export interface MessageTable extends Pick<TableWords, "layout" | "words" | "stored" | "page"> {
  readonly messages: Sql;
  readonly companions: Readonly<Record<keyof CompanionTables, Sql>>;
  /** The message table or its archive. */
  readonly of: (archived: boolean) => Sql;
  /** Value of `table_name` in the companion tables. */
  readonly key: Sql;
  readonly rows: Sql;
  readonly shard: Sql;
  readonly ofTopics: Sql;
  /** Columns of interest to people. */
  readonly columns: readonly (keyof LayoutColumns)[];
  readonly has: (name: keyof LayoutColumns) => boolean;
  /** `m.column`, for words; throws for a column that the layout lacks. */
  readonly name: (name: keyof LayoutColumns) => string;
  readonly column: (name: keyof LayoutColumns) => Sql;
  readonly state: (state: MessageState) => Sql;
  readonly waysTo: (state: MessageState) => readonly Way[];
  readonly clock: {
    readonly now: Sql;
    readonly isoNow: Sql;
    readonly after: Clock["after"];
    readonly iso: (instant: string) => Sql;
    readonly msSince: (instant: string) => Sql;
    readonly msUntil: (instant: string) => Sql;
    readonly instant: (epochMs: number) => string;
  };
}

export function messageTable({ clock, waysTo, ...given }: TableWords): MessageTable {
  const { layout, ofTopics, page, rows, shard, stored, words } = given;
  const schema = layout.schema === undefined ? "" : `${words.quoted(layout.schema)}.`;
  const quoted = (name: string): Sql => plain(`${schema}${words.quoted(name)}`);
  const beside = Object.entries(companionTables(layout)).map(([which, name]) => [which, quoted(String(name))]);
  const companions = Object.fromEntries(beside) as MessageTable["companions"];
  const messages = quoted(layout.table);
  const has = (name: keyof LayoutColumns): boolean => layout.columns[name] !== undefined;
  const name = (property: keyof LayoutColumns): string => {
    const found = layout.columns[property];
    if (found === undefined) throw new Error(`the layout ${layout.name} has no column ${property}`);
    return `m.${words.quoted(found)}`;
  };
  const properties = Object.keys(layout.columns) as (keyof LayoutColumns)[];
  const table: MessageTable = {
    layout,
    words,
    stored,
    page,
    messages,
    companions,
    has,
    name,
    of: (archived) => (archived ? companions.archive : messages),
    key: plain(literal(tableKey(layout))),
    rows: plain(rows),
    shard: plain(shard),
    ofTopics: plain(ofTopics),
    columns: properties.filter((property) => has(property) && !ENGINE_COLUMNS.has(property)),
    column: (property) => plain(name(property)),
    state: (state) => plain(stateLiteral(layout.states[state])),
    waysTo: (state) =>
      waysTo?.(table, state) ?? [{ where: part`${table.column("state")} = ${table.state(state)}`, inIdOrder: false }],
    clock: clockOf(clock ?? words),
  };
  return table;
}

function clockOf({ after, instant, iso, msSince, msUntil, now }: Clock): MessageTable["clock"] {
  return {
    now: plain(now),
    isoNow: plain(iso(now)),
    after,
    iso: (of) => plain(iso(of)),
    msSince: (since) => plain(msSince(since)),
    msUntil: (until) => plain(msUntil(until)),
    instant: (epochMs) => instant(within(epochMs).toISOString().replace("T", " ").replace("Z", "")),
  };
}

/** No engine writes a five-digit year, and PostgreSQL has no year 0. */
function within(epochMs: number): Date {
  const [first, last] = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"].map((text) => Date.parse(text));
  return new Date(Math.min(Math.max(epochMs, first ?? epochMs), last ?? epochMs));
}
