/**
 * SQL that stands once for all engines: a statement is a template, what is put into it becomes its
 * parameters, and what the engines spell in different ways is a word. For what runs now and then; a
 * statement that runs for every message is written whole for each engine (see scan.ts, settle.ts).
 */
import type { Statement } from "../../transactions/executor.ts";

/** Text, and what stands between its parts. */
export interface Sql {
  readonly texts: readonly string[];
  readonly values: readonly Value[];
}

/** An id or another number of 64 bits, which travels as text. */
export interface Id {
  readonly id: string;
}

/** A part of a statement that each engine spells in its own way. */
export type Word = (words: Words) => Sql;

/** In a template: a parameter, or a part of the statement. */
export type Value = string | number | null | Id | Sql | Word;

/** A statement that is not spelled yet. */
export interface Cold {
  readonly name: string;
  readonly sql: Sql;
}

/** The instants of a table. */
export interface Clock {
  readonly now: string;
  /** So many milliseconds from now; before now, where they are negative. */
  readonly after: (ms: Value) => Sql;
  /** A literal of a UTC instant, `YYYY-MM-DD HH:MM:SS.mmm`. */
  readonly instant: (utc: string) => string;
  /** An instant as ISO 8601. */
  readonly iso: (instant: string) => string;
  /** Whole milliseconds since then; 0 where it lies ahead, NULL for NULL. */
  readonly msSince: (instant: string) => string;
  /** Whole milliseconds until then; less than 0 where it is over, NULL for NULL. */
  readonly msUntil: (instant: string) => string;
}

/**
 * How an engine spells what the others spell in another way. Names are not quoted yet. The clock is
 * that of rowpost's own tables, which is in UTC.
 */
export interface Words extends Clock {
  /** Numbers are no parameters. */
  readonly isNumberInText: boolean;
  /** Of the parameter in this place, from 1. */
  readonly parameter: (place: number, value: string | number | null | Id) => string;
  readonly quoted: (name: string) => string;
  /** What `CAST(id AS …)` makes a text. */
  readonly text: string;
  /** An aggregate: numbers as texts by another number, as one JSON object. */
  readonly textsBy: (key: string, number: string) => string;
  /** A literal of the wall clock of some zone, written as UTC instants are. */
  readonly wallClock: (text: string) => string;
  /** What is no code in a query: texts, quoted names, comments. The pattern is sticky. */
  readonly opaque: RegExp;
  readonly forUpdate: string;
  /** Behind a table: read by this index, whatever the optimizer knows of the table. */
  readonly by: (index: string) => string;
  /** Behind the message table: not along its ids, however few rows the optimizer expects. */
  readonly notById: string;
  /** A column as part of a condition that leads to no index. */
  readonly unsought: (column: string) => string;
  /** A text that is compared by its bytes, whatever its collation is. */
  readonly bytesOf: (text: string) => string;
  /** A function: the place of a text in another one, from 1; 0: it is not in it. */
  readonly indexOf: string;
  /** Texts that begin so, by an index of the column. `isBytes`: it is known to compare bytes. */
  readonly beginsWith: (column: string, prefix: string, isBytes: boolean) => Sql;
  /** The column is one of these ids. */
  readonly idIn: (column: string, ids: readonly string[]) => string;
  /** 1, or 0: no table of this name is where the connection leads. */
  readonly hasTable: (name: string) => string;
  /** INSERT INTO that leaves a row as it is whose key is there; with `orNothing` behind it. */
  readonly insertNew: string;
  readonly orNothing: (key: string) => string;
  /** Behind an UPDATE: consumers that hear of appends look at their groups before they go on. */
  readonly andRing: string;
  /** The condition of rows behind this one in the order of these columns. */
  readonly behind: (place: Place) => Sql;
  /** Joins at most one row of a table, which is looked up by its whole primary key. */
  readonly lookUp: (how: "JOIN" | "LEFT JOIN", table: string, alias: string, on: Sql) => Sql;
  /** FROM and WHERE: rows `m` that this is true of, whose key is one of these; by an index. */
  readonly withKeys: (rows: KeyedRows) => Sql;
  /** A SELECT with an order and a limit of its own as one of several of a UNION ALL. */
  readonly branch: (select: Sql) => Sql;
}

/** Columns, and the values of a row in them. */
export type Place = readonly (readonly [column: string, value: Value])[];

/** Of a table, as `m`. */
export interface KeyedRows {
  readonly from: Sql;
  readonly where: Sql;
  readonly key: Sql;
  readonly keys: readonly string[];
}

type Template = (texts: TemplateStringsArray, ...values: readonly Value[]) => Sql;

/** A part of a statement. */
export const part: Template = (texts, ...values) => ({ texts, values });

/** SQL as it stands. */
export const plain = (text: string): Sql => ({ texts: [text], values: [] });

/** A whole statement, under its name. */
export function cold(name: string): (...template: Parameters<Template>) => Cold {
  return (...template) => ({ name, sql: part(...template) });
}

export const id = (value: string): Id => ({ id: value });

/** All of these, with a text between them. */
export function joined(parts: readonly Value[], between: string): Sql {
  return { texts: ["", ...parts.slice(1).map(() => between), ""], values: parts };
}

/** The rows behind this one, where an engine compares rows along an index. */
export function behindRow(place: Place): Sql {
  const values = place.map(([, value]) => value);
  return part`(${plain(place.map(([column]) => column).join(", "))}) > (${joined(values, ", ")})`;
}

/** An id as it stands in the text of a statement. Throws for all else: it would be code there. */
export function decimal(value: string): string {
  if (/^-?\d{1,20}$/.test(value)) return value;
  throw new Error(`${JSON.stringify(value)} is no id: ids are whole numbers`);
}

export function idInList(column: string, ids: readonly string[]): string {
  return `${column} IN (${ids.length === 0 ? "NULL" : ids.map(decimal).join(", ")})`;
}

/** Where an engine looks up each value of a list by an index. */
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

/** The statement as this engine takes it; one that is written for the engine as it is. */
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
