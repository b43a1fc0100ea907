/** A WHERE from a filter's fields, for dialects with any words and placeholders. */
import type { MessageState } from "../../message/states.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { FindRequest, IdRange, InsightStatements, KeyCount } from "./insight-statements.ts";
import type { LayoutColumns } from "./layout.ts";

const LAST_CODE_POINT = 0x10ffff;

/** What a dialect has its own words for. */
export interface FindWords {
  /** `m.column`, or undefined where the layout has none. */
  column(property: keyof LayoutColumns): string | undefined;
  stateIn(states: readonly MessageState[]): string;
  tableOf(archived: boolean): string;
  /** The column whose index holds the ordering keys of unfinished rows. */
  readonly openKey: string | undefined;
  /** Placeholder of the nth value, from 1. */
  place(number: number): string;
  idIn(column: string, ids: readonly string[]): string;
  /** An instant of the table from the placeholder of epoch milliseconds. */
  asInstant(place: string): string;
  contains(column: string, place: string): string;
  /** As a range of an index on the column. */
  beginsWith(column: string, prefix: string, bind: (value: string) => string): string;
  /** The whole statement: its conditions without those on the states. */
  select(request: FindRequest, where: readonly string[]): string;
}

/** Of a dialect whose names stand in the text as they are. */
export function plainWords(names: {
  readonly archive: string;
  readonly table: string;
  readonly column: { readonly [Property in keyof LayoutColumns]?: string | undefined };
}): Pick<FindWords, "column" | "openKey" | "tableOf"> {
  const column = (property: keyof LayoutColumns): string | undefined =>
    names.column[property] === undefined ? undefined : `m.${names.column[property]}`;
  return { column, openKey: column("orderingKey"), tableOf: (archived) => (archived ? names.archive : names.table) };
}

/** The statements that differ by their words alone. */
export function listStatements(words: FindWords): Pick<InsightStatements, "countKeys" | "find"> {
  return {
    find: (request) => findStatement(request, words),
    countKeys: (request) => countKeysStatement(request, words),
  };
}

/** Conditions on the id. They are checked decimal numbers, and stand in the text. */
export function idConditions(column: string, { highId, lowId }: IdRange): string[] {
  return [
    ...(lowId === undefined ? [] : [`${column} >= ${lowId}`]),
    ...(highId === undefined ? [] : [`${column} <= ${highId}`]),
  ];
}

/** ` WHERE … AND …`, or nothing. */
export function whereText(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `\nWHERE ${conditions.join(" AND ")}`;
}

/** Texts that begin with this one, where the column compares bytes. */
export function prefixRange(column: string, prefix: string, bind: (value: string) => string): string {
  const end = behindPrefix(prefix);
  const from = `${column} >= ${bind(prefix)}`;
  return end === undefined ? from : `${from} AND ${column} < ${bind(end)}`;
}

/** The first text behind all that begin with this one; undefined: none is behind them. */
export function behindPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // Surrogates are no characters, and no database takes them.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}

/** Ids of messages that match. */
function findStatement(request: FindRequest, words: FindWords): Statement {
  const { createdAfter, createdBefore, failReasonContains, ids, key, keyPrefix, orderingKey, topic, types } =
    request.match;
  const params: unknown[] = [];
  const column = (property: keyof LayoutColumns): string => words.column(property) ?? "NULL";
  const where = idConditions(column("id"), request);
  const bind = (value: unknown): string => words.place(params.push(value));
  const equals = (property: keyof LayoutColumns, value: string | undefined): void => {
    if (value !== undefined) where.push(`${column(property)} = ${bind(value)}`);
  };
  if (ids !== undefined) where.push(words.idIn(column("id"), ids));
  if (types !== undefined) where.push(`${column("messageType")} IN (${types.map(bind).join(", ")})`);
  equals("messageKey", key);
  if (keyPrefix !== undefined) where.push(words.beginsWith(column("messageKey"), keyPrefix, bind));
  equals("topic", topic);
  if (request.along === "keys") where.push(`${words.openKey ?? "NULL"} = ${bind(orderingKey)}`);
  else equals("orderingKey", orderingKey);
  if (failReasonContains !== undefined) where.push(words.contains(column("failReason"), bind(failReasonContains)));
  const instant = (text: string): string => words.asInstant(bind(Date.parse(text)));
  if (createdAfter !== undefined) where.push(`${column("gmtCreate")} > ${instant(createdAfter)}`);
  if (createdBefore !== undefined) where.push(`${column("gmtCreate")} < ${instant(createdBefore)}`);
  return { name: "find", text: words.select(request, where), params };
}

/** The order makes it a walk of the index on type and key, which ends at the limit. */
function countKeysStatement({ archived, keyPrefix, limit, types }: KeyCount, words: FindWords): Statement {
  const params: unknown[] = [];
  const bind = (value: unknown): string => words.place(params.push(value));
  const [type, key] = [words.column("messageType"), words.column("messageKey") ?? "NULL"];
  const ofEach = types.map(
    (each) => `SELECT one FROM (SELECT 1 AS one FROM ${words.tableOf(archived)} AS m
  WHERE ${type} = ${bind(each)} AND ${words.beginsWith(key, keyPrefix, bind)} ORDER BY ${key} LIMIT ${limit}) AS k`,
  );
  return { name: "countKeys", text: `SELECT COUNT(*) AS count FROM (${ofEach.join("\nUNION ALL\n")}) AS c`, params };
}
