/**
 * A layout in SQL, for dialects that quote names with "…": state literals and shared expressions.
 * Expressions that set a missing column are "".
 */
import { allowedFrom, MESSAGE_STATES, type MessageState, type TransitionName } from "../../message/states.ts";
import { BEHIND_BASE } from "./behind.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { companionTables, ENGINE_COLUMNS, formerTables, hasClaimToken, tableKey } from "./layouts.ts";
import { isLeaseKey, leaseKey, type OwnTopics, ofTopics } from "./own-topics.ts";

export interface DialectWords {
  readonly now: string;
  /** An instant from a text of behind.ts, an SQL expression. */
  readonly instant: (text: string) => string;
  /** Now plus milliseconds (an SQL expression); NULL if they are NULL. */
  readonly after: (ms: string) => string;
  /** The later of two instants; the first may be NULL. */
  readonly later: (instantOrNull: string, instant: string) => string;
  /** A 64-bit whole number, as text if the driver would round it. */
  readonly whole: (column: string) => string;
  /** A count, capped at a JavaScript number if the driver would refuse it. */
  readonly count: (column: string) => string;
  readonly next: (version: string) => string;
  /** Distinguishes messages of different types or keys; see RowToken. Either may be NULL. */
  readonly identityHash: (type: string, key: string) => string;
  /** Condition that the topic matches the pattern, byte for byte. */
  readonly isOfTopic: (topic: string, pattern: string) => string;
  /** A column as rows.ts reads it: text, or for bytes the input of `storedBody`. */
  readonly stored: (column: string, type: TableLayout["bodyType"]) => string;
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
  readonly formerTables: readonly string[];
  readonly migrationTable: string;
  readonly tableKey: string;
  /** Literal of `table_name` in the lease rows and the registry of these relays (own-topics.ts). */
  readonly leaseKey: string;
  /** Condition that `table_name` is the lease key of a relay of this table, whatever its topics. */
  readonly isLeaseKey: string;
  /** ` AND …` or "": row `m` belongs to a topic of these relays. */
  readonly ofTopics: string;
  /** Quoted column name; undefined if the layout has none. */
  readonly column: {
    readonly [Name in keyof LayoutColumns]: LayoutColumns[Name] extends string ? string : string | undefined;
  };
  /**
   * Comma-separated literals. Never parameters: a plan made before they are known could not use a
   * partial index.
   */
  state(...states: readonly MessageState[]): string;
  /** Literals of the states that a transition starts from. */
  from(transition: TransitionName): string;
  readonly knownStates: string;
  /** The body as it is read, for any column type. */
  readonly body: string;
  /** The headers as they are read; undefined if the layout has none. */
  readonly headers: string | undefined;
  /** `m.column`, or this expression for a missing column. */
  read(column: keyof LayoutColumns, otherwise: string): string;
  /** `, column = expression`, or "" for a missing column. */
  set(column: keyof LayoutColumns, expression: string): string;
  /** `, lock_version = … + 1, gmt_modified = now`, written by every change. */
  readonly changed: string;
  readonly retryCount: string;
  /** Value of lock_version; 0 if the layout has none. */
  readonly version: string;
  /** Columns of RowToken except id and shard. */
  readonly tokenColumns: string;
  /** Condition that row `m` is the message of `rows.identity_hash`, at any version. */
  isSameMessage(rows: string): string;
  /**
   * Condition that row `m` is that message, at the version of `rows.token` if the layout has one
   * (rule: claim-token).
   */
  tokenMatches(rows: string): string;
  /**
   * next_retry_at of a row that becomes pending at once: NULL unless still delayed (rule:
   * delay-is-not-retry).
   */
  readonly pendingNow: string;
  /**
   * next_retry_at of a row that becomes pending in `ms` milliseconds; NULL = at once. Never before
   * deliver_at (rule: delay-is-not-retry).
   */
  pendingIn(ms: string): string;
  /**
   * ` AND …`: row `m` is not delayed; "" if the layout has deliver_at. Otherwise a suspension would
   * overwrite the delay of a row never tried (rule: delay-is-not-retry). A row that is set behind
   * is not delayed.
   */
  readonly notDelayed: string;
}

/** Text as a literal; backslashes are plain characters. */
export function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/**
 * Single words that are not keywords. Other names without an underscore are quoted, since they may
 * be keywords.
 */
const PLAIN_WORDS: ReadonlySet<string> = new Set(["id", "topic", "headers", "state", "status"]);

/** A name in SQL, quoted only if needed, to keep statements readable. */
export function quoteName(name: string): string {
  const plain = /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name) && !/^(current|session|system)_/.test(name);
  return plain || PLAIN_WORDS.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

export function inSchema(layout: TableLayout, table: string): string {
  return layout.schema === undefined ? quoteName(table) : `${quoteName(layout.schema)}.${quoteName(table)}`;
}

export function createSqlNames(layout: TableLayout, topics: OwnTopics, words: DialectWords): SqlNames {
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
    formerTables: formerTables(layout).map((table) => inSchema(layout, table)),
    migrationTable: inSchema(layout, companions.migration),
    tableKey: literal(tableKey(layout)),
    leaseKey: literal(leaseKey(layout, topics)),
    isLeaseKey: isLeaseKey(layout, literal),
    ofTopics: ofTopics(topics, (pattern) => words.isOfTopic(`m.${column.topic}`, pattern)),
    column,
    body: words.stored(`m.${column.messageBody}`, layout.bodyType),
    headers: column.headers && words.stored(`m.${column.headers}`, layout.headersType),
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
): Pick<SqlNames, "set" | "changed" | "isSameMessage" | "retryCount" | "tokenColumns" | "tokenMatches" | "version"> {
  const set = (name: keyof LayoutColumns, expression: string): string =>
    column[name] === undefined ? "" : `, ${column[name]} = ${expression}`;
  const version = column.lockVersion === undefined ? "0" : words.whole(`m.${column.lockVersion}`);
  const identityHash = words.identityHash(`m.${column.messageType}`, `m.${column.messageKey}`);
  const isSameMessage = (rows: string): string => `${identityHash} = ${rows}.identity_hash`;
  return {
    set,
    version,
    retryCount: words.count(`m.${column.retryCount}`),
    changed: `${set("lockVersion", words.next(`COALESCE(m.${column.lockVersion}, 0)`))}, ${column.gmtModified} = ${words.now}`,
    tokenColumns: `${column.deliveryCount === undefined ? "0" : words.count(`m.${column.deliveryCount}`)} AS delivery_count, ${version} AS lock_version, ${identityHash} AS identity_hash`,
    isSameMessage,
    tokenMatches: (rows) =>
      `${hasClaimToken(layout) ? `COALESCE(m.${column.lockVersion}, 0) = ${rows}.token AND ` : ""}${isSameMessage(rows)}`,
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

/** Without columns that only MySQL has. */
function quoteColumns(columns: LayoutColumns): Columns {
  const quoted = Object.entries(columns)
    .filter(([property, name]) => name !== undefined && !ENGINE_COLUMNS.has(property))
    .map(([property, name]) => [property, quoteName(String(name))]);
  return Object.fromEntries(quoted) as Columns;
}

export function stateLiteral(value: number | string): string {
  return typeof value === "number" ? String(value) : literal(value);
}

export function withoutEngineColumns(layout: TableLayout): TableLayout {
  return {
    ...layout,
    columns: { ...layout.columns, settlePad: undefined, waitingTopic: undefined, openKey: undefined },
  };
}

export const INSTANTS: ReadonlySet<string> = new Set([
  "nextRetryAt",
  "lastRetryAt",
  "deliverAt",
  "sentAt",
  "consumedAt",
  "gmtCreate",
  "gmtModified",
]);

export const WHOLE: ReadonlySet<string> = new Set(["id", "lockVersion", "retryCount", "deliveryCount"]);
