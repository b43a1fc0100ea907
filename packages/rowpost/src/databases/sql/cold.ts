/**
 * SQL shared by all engines: template values become parameters, and words stand for syntax that
 * differs. Only for rare statements; those that run per message are written for each engine (see
 * scan.ts, settle.ts).
 */
import type { Statement } from "../../transactions/executor.ts";

export interface Sql {
  readonly texts: readonly string[];
  readonly values: readonly Value[];
}

/** A 64-bit number such as an id, passed as text. */
export interface Id {
  readonly id: string;
}

/** A part of a statement whose syntax differs by engine. */
export type Word = (words: Words) => Sql;

/** A template value: a parameter or a part of the statement. */
export type Value = string | number | null | Id | Sql | Word;

/** A statement not yet translated for an engine. */
export interface Cold {
  readonly name: string;
  readonly sql: Sql;
}

export interface Clock {
  readonly now: string;
  /** Milliseconds from now; negative for the past. */
  readonly after: (ms: Value) => Sql;
  /** A literal of a UTC instant, `YYYY-MM-DD HH:MM:SS.mmm`. */
  readonly instant: (utc: string) => string;
  readonly iso: (instant: string) => string;
  /** Whole milliseconds since the instant; 0 for the future, NULL for NULL. */
  readonly msSince: (instant: string) => string;
  /** Whole milliseconds until the instant; negative once it has passed, NULL for NULL. */
  readonly msUntil: (instant: string) => string;
}

/**
 * An engine's syntax. Names are not quoted yet. The clock is that of rowpost's own tables, in UTC.
 */
export interface Words extends Clock {
  /** Numbers are written into the text instead of passed as parameters. */
  readonly isNumberInText: boolean;
  /** Placeholder of the parameter at this place, from 1. */
  readonly parameter: (place: number, value: string | number | null | Id) => string;
  readonly quoted: (name: string) => string;
  /** Type for `CAST(id AS …)` to text. */
  readonly text: string;
  /** Aggregate: texts by number, as one JSON object. */
  readonly textsBy: (key: string, number: string) => string;
  /** Literal of a zone's wall clock, written like a UTC instant. */
  readonly wallClock: (text: string) => string;
  /** Parts of a query that are not code: texts, quoted names, comments. The pattern is sticky. */
  readonly opaque: RegExp;
  readonly forUpdate: string;
  /** After a table: forces this index, whatever the statistics say. */
  readonly by: (index: string) => string;
  /** After the message table: avoids its ids, however few rows the optimizer expects. */
  readonly notById: string;
  /** A column in a condition that must not choose an index. */
  readonly unsought: (column: string) => string;
  /** A text compared by bytes, whatever its collation. */
  readonly bytesOf: (text: string) => string;
  /** A function: position of a text in another, from 1; 0 if absent. */
  readonly indexOf: string;
  /** Texts with this prefix, by an index of the column. `isBytes`: the column compares bytes. */
  readonly beginsWith: (column: string, prefix: string, isBytes: boolean) => Sql;
  readonly idIn: (column: string, ids: readonly string[]) => string;
  /** 1 if the connection finds a table of this name, else 0. */
  readonly hasTable: (name: string) => string;
  /** INSERT INTO that keeps an existing row; needs `orNothing` after it. */
  readonly insertNew: string;
  readonly orNothing: (key: string) => string;
  /** After an UPDATE: wakes consumers that listen for appends to check their groups. */
  readonly andRing: string;
  /** Condition for rows after this one in the order of these columns. */
  readonly behind: (place: Place) => Sql;
  /** Joins at most one row of a table by its whole primary key. */
  readonly lookUp: (how: "JOIN" | "LEFT JOIN", table: string, alias: string, on: Sql) => Sql;
  /** FROM and WHERE: matching rows `m` with one of these keys, by an index. */
  readonly withKeys: (rows: KeyedRows) => Sql;
  /** A SELECT with its own order and limit inside a UNION ALL. */
  readonly branch: (select: Sql) => Sql;
}

/** Columns with the values of a row. */
export type Place = readonly (readonly [column: string, value: Value])[];

export interface KeyedRows {
  readonly from: Sql;
  readonly where: Sql;
  readonly key: Sql;
  readonly keys: readonly string[];
}

type Template = (texts: TemplateStringsArray, ...values: readonly Value[]) => Sql;

export const part: Template = (texts, ...values) => ({ texts, values });

/** SQL without parameters. */
export const plain = (text: string): Sql => ({ texts: [text], values: [] });

export function cold(name: string): (...template: Parameters<Template>) => Cold {
  return (...template) => ({ name, sql: part(...template) });
}

export const id = (value: string): Id => ({ id: value });

export function joined(parts: readonly Value[], between: string): Sql {
  return { texts: ["", ...parts.slice(1).map(() => between), ""], values: parts };
}

/** Rows after this one, for engines that compare rows along an index. */
export function behindRow(place: Place): Sql {
  const values = place.map(([, value]) => value);
  return part`(${plain(place.map(([column]) => column).join(", "))}) > (${joined(values, ", ")})`;
}

/** An id as text of a statement. Throws for anything else, which would be code. */
export function decimal(value: string): string {
  if (/^-?\d{1,20}$/.test(value)) return value;
  throw new Error(`${JSON.stringify(value)} is no id: ids are whole numbers`);
}

export function idInList(column: string, ids: readonly string[]): string {
  return `${column} IN (${ids.length === 0 ? "NULL" : ids.map(decimal).join(", ")})`;
}

/** For engines that look up each value of a list by an index. */
export function keysInList({ from, key, keys, where }: KeyedRows): Sql {
  return part`FROM ${from} WHERE ${where} AND ${key} IN (${joined(keys, ", ")})`;
}

const word =
  (spelling: (words: Words) => string): Word =>
  (words) =>
    plain(spelling(words));

export const now: Word = word((words) => words.now);
export const forUpdate: Word = word((words) => words.forUpdate);
export const notById: Word = word((words) => words.notById);
export const insertNew: Word = word((words) => words.insertNew);
export const quoted = (name: string): Word => word((words) => words.quoted(name));
export const textOf = (number: string): Word => word((words) => `CAST(${number} AS ${words.text})`);
export const textsBy = (key: string, number: string): Word => word((words) => words.textsBy(key, number));
export const instant = (utc: string): Word => word((words) => words.instant(utc));
export const iso = (of: string): Word => word((words) => words.iso(of));
export const msSince = (of: string): Word => word((words) => words.msSince(of));
export const andRing: Word = word((words) => words.andRing);
export const by = (index: string): Word => word((words) => words.by(index));
export const bytesOf = (text: string): Word => word((words) => words.bytesOf(text));
export const unsought = (column: string): Word => word((words) => words.unsought(column));
export const hasTable = (name: string): Word => word((words) => words.hasTable(name));
export const orNothing = (key: string): Word => word((words) => words.orNothing(key));

export const after =
  (ms: Value): Word =>
  (words) =>
    words.after(ms);
export const behind =
  (place: Place): Word =>
  (words) =>
    words.behind(place);
export const lookUp =
  (...of: Parameters<Words["lookUp"]>): Word =>
  (words) =>
    words.lookUp(...of);
export const withKeys =
  (rows: KeyedRows): Word =>
  (words) =>
    words.withKeys(rows);
export const branch =
  (select: Sql): Word =>
  (words) =>
    words.branch(select);

/** Translates a statement for this engine; returns an engine-specific one unchanged. */
export function spelled(words: Words, statement: Cold | Statement): Statement {
  if ("text" in statement) return statement;
  const { name, sql } = statement;
  const params: unknown[] = [];
  const written = ({ texts, values }: Sql): string =>
    texts.map((text, index) => (index === 0 ? text : spell(values[index - 1] ?? null) + text)).join("");
  function spell(value: Value): string {
    if (typeof value === "function") return written(value(words));
    if (value !== null && typeof value === "object" && "texts" in value) return written(value);
    if (words.isNumberInText && typeof value === "number") return String(value);
    params.push(value !== null && typeof value === "object" ? value.id : value);
    return words.parameter(params.length, value);
  }
  return { name, text: written(sql), params };
}
