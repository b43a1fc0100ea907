/**
 * A layout in SQL's words, for dialects that quote names with "…": literals of the states and the
 * few expressions that every statement needs in the same form. A layout without a column gets ""
 * where the column would be set, so that the statements around it stay whole.
 */
import { allowedFrom, MESSAGE_STATES, type MessageState, type TransitionName } from "../../message/states.ts";
import type { RowToken } from "../../relay/store.ts";
import { BEHIND_BASE } from "./behind.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { companionTables, ENGINE_COLUMNS, hasClaimToken, tableKey } from "./layouts.ts";

/** What a dialect has its own words for. */
export interface DialectWords {
  /** The database's clock. */
  readonly now: string;
  /** An instant from a text of behind.ts, an SQL expression. */
  readonly instant: (text: string) => string;
  /** Now plus milliseconds (an SQL expression); NULL when they are NULL. */
  readonly after: (ms: string) => string;
  /** The later of two instants, of which the first may be NULL. */
  readonly later: (instantOrNull: string, instant: string) => string;
}

/** Names and expressions of one layout. `m` is the message row in every statement. */
export interface SqlNames {
  readonly layout: TableLayout;
  readonly table: string;
  readonly archive: string;
  readonly shardTable: string;
  readonly relayTable: string;
  readonly suspensionTable: string;
  readonly auditTable: string;
  readonly confirmationTable: string;
  readonly unmatchedTable: string;
  readonly sessionTable: string;
  readonly alertTable: string;
  readonly silenceTable: string;
  readonly operationTable: string;
  readonly operationBatchTable: string;
  readonly operationConflictTable: string;
  readonly migrationTable: string;
  /** Literal of `table_name` in the companion tables. */
  readonly tableKey: string;
  /** Quoted column name; undefined where the layout has none. */
  readonly column: {
    readonly [Name in keyof LayoutColumns]: LayoutColumns[Name] extends string ? string : string | undefined;
  };
  /**
   * Literals, comma separated. Never parameters: a plan that is made before they are known could
   * use no partial index.
   */
  state(...states: readonly MessageState[]): string;
  /** Literals of the states that a transition starts from. */
  from(transition: TransitionName): string;
  /** Literals of all states that the layout knows. */
  readonly knownStates: string;
  /** `m.column`, or this expression where the layout has none. */
  read(column: keyof LayoutColumns, otherwise: string): string;
  /** `, column = expression`, or "" when the layout lacks the column. */
  set(column: keyof LayoutColumns, expression: string): string;
  /** `, lock_version = … + 1, gmt_modified = now`: what every change writes. */
  readonly changed: string;
  /**
   * Condition that row `m` is at the version that `rows.token` names: the claim token of rule:
   * claim-token, or "true" where the layout has none.
   */
  tokenMatches(rows: string): string;
  /** Value of a row's claim token. */
  tokenOf(row: RowToken): number;
  /**
   * next_retry_at of a row that becomes pending at once: NULL, unless it is delayed still (rule:
   * delay-is-not-retry).
   */
  readonly pendingNow: string;
  /**
   * next_retry_at of a row that becomes pending in `ms` milliseconds; NULL = at once. Never below
   * deliver_at (rule: delay-is-not-retry).
   */
  pendingIn(ms: string): string;
  /**
   * ` AND …`: row `m` is not delayed. Without deliver_at the time of a row never tried is its
   * delay, and a suspension would overwrite it (rule: delay-is-not-retry). "" where the layout has
   * deliver_at. A row that is set behind is not delayed.
   */
  readonly notDelayed: string;
}

/** Text as a literal; a backslash is a backslash. */
export function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/**
 * Single words that are no keywords; every other name without an underscore is quoted, because it
 * may be one.
 */
const PLAIN_WORDS: ReadonlySet<string> = new Set(["id", "topic", "headers", "state", "status"]);

/**
 * A name as it stands in SQL, with quotes only where needed: the statements are meant to be read.
 */
export function quoteName(name: string): string {
  const plain = /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name) && !/^(current|session|system)_/.test(name);
  return plain || PLAIN_WORDS.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** A table's name with the layout's schema. */
export function inSchema(layout: TableLayout, table: string): string {
  return layout.schema === undefined ? quoteName(table) : `${quoteName(layout.schema)}.${quoteName(table)}`;
}

/** Names and expressions for a layout. */
export function createSqlNames(layout: TableLayout, words: DialectWords): SqlNames {
  const companions = companionTables(layout);
  const column = quoteColumns(layout.columns);
  const literals = (states: readonly MessageState[]): string =>
    states.map((state) => stateLiteral(layout.states[state])).join(", ");
  return {
    layout,
    table: inSchema(layout, layout.table),
    archive: inSchema(layout, companions.archive),
    shardTable: inSchema(layout, companions.shard),
    relayTable: inSchema(layout, companions.relay),
    suspensionTable: inSchema(layout, companions.suspension),
    auditTable: inSchema(layout, companions.audit),
    confirmationTable: inSchema(layout, companions.confirmation),
    unmatchedTable: inSchema(layout, companions.unmatched),
    sessionTable: inSchema(layout, companions.session),
    alertTable: inSchema(layout, companions.alert),
    silenceTable: inSchema(layout, companions.silence),
    operationTable: inSchema(layout, companions.operation),
    operationBatchTable: inSchema(layout, companions.operationBatch),
    operationConflictTable: inSchema(layout, companions.operationConflict),
    migrationTable: inSchema(layout, companions.migration),
    tableKey: literal(tableKey(layout)),
    column,
    state: (...states) => literals(states),
    from: (transition) => literals(allowedFrom(transition)),
    knownStates: literals(MESSAGE_STATES),
    read: (name, otherwise) => (column[name] === undefined ? otherwise : `m.${column[name]}`),
    ...versionWords(layout, column, words),
    ...timeWords(layout, column, words),
  };
}

type Columns = SqlNames["column"];

function versionWords(
  layout: TableLayout,
  column: Columns,
  words: DialectWords,
): Pick<SqlNames, "set" | "changed" | "tokenMatches" | "tokenOf"> {
  const set = (name: keyof LayoutColumns, expression: string): string =>
    column[name] === undefined ? "" : `, ${column[name]} = ${expression}`;
  return {
    set,
    changed: `${set("lockVersion", `COALESCE(m.${column.lockVersion}, 0) + 1`)}, ${column.gmtModified} = ${words.now}`,
    tokenMatches: (rows) => (hasClaimToken(layout) ? `COALESCE(m.${column.lockVersion}, 0) = ${rows}.token` : "true"),
    tokenOf: (row) => row.lockVersion,
  };
}

function timeWords(
  layout: TableLayout,
  column: Columns,
  words: DialectWords,
): Pick<SqlNames, "pendingNow" | "pendingIn" | "notDelayed"> {
  const { after, later, now } = words;
  if (column.deliverAt === undefined) {
    const pending = stateLiteral(layout.states.pending);
    return {
      pendingNow: "NULL",
      pendingIn: after,
      notDelayed: ` AND NOT (m.${column.state} = ${pending} AND COALESCE(m.${column.retryCount}, 0) = 0 AND m.${column.nextRetryAt} IS NOT NULL AND m.${column.nextRetryAt} > ${now} AND m.${column.nextRetryAt} < ${words.instant(literal(BEHIND_BASE))})`,
    };
  }
  const deliverAt = `m.${column.deliverAt}`;
  const pendingNow = `CASE WHEN ${deliverAt} > ${now} THEN ${deliverAt} END`;
  return {
    pendingNow,
    pendingIn: (ms) => `CASE WHEN ${ms} IS NULL THEN ${pendingNow} ELSE ${later(deliverAt, after(ms))} END`,
    notDelayed: "",
  };
}

/** Without those that only MySQL has. */
function quoteColumns(columns: LayoutColumns): Columns {
  const quoted = Object.entries(columns)
    .filter(([property, name]) => name !== undefined && !ENGINE_COLUMNS.has(property))
    .map(([property, name]) => [property, quoteName(String(name))]);
  return Object.fromEntries(quoted) as Columns;
}

function stateLiteral(value: number | string): string {
  return typeof value === "number" ? String(value) : literal(value);
}

/** A layout without the columns that only MySQL has. */
export function withoutEngineColumns(layout: TableLayout): TableLayout {
  return {
    ...layout,
    columns: { ...layout.columns, settlePad: undefined, waitingTopic: undefined, openKey: undefined },
  };
}

/** Columns that are instants. */
const INSTANTS: ReadonlySet<string> = new Set([
  "nextRetryAt",
  "lastRetryAt",
  "deliverAt",
  "sentAt",
  "consumedAt",
  "gmtCreate",
  "gmtModified",
]);

const BODIES: ReadonlySet<string> = new Set(["messageBody", "headers"]);

/**
 * Columns of row `m`, each under its property's name in snake_case, which is what rows.ts reads;
 * the body and headers only with `bodies`.
 */
export function listedColumns(
  names: SqlNames,
  as: {
    readonly id: (column: string) => string;
    readonly instant: (column: string) => string;
    readonly bodies: boolean;
  },
): string {
  const wanted = Object.entries(names.column).filter(([property]) => as.bodies || !BODIES.has(property));
  const listed = wanted.map(([property, name]) => {
    const column = `m.${name}`;
    const value = property === "id" ? as.id(column) : INSTANTS.has(property) ? as.instant(column) : column;
    return `${value} AS ${property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
  });
  return listed.join(", ");
}
