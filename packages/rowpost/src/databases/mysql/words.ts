/** MySQL and MariaDB syntax for the words of sql/cold.ts. */
import { type Clock, idInList, keysInList, type Place, part, plain, type Sql, type Words } from "../sql/cold.ts";
import type { TableWords } from "../sql/cold-table.ts";
import { prefixRange } from "../sql/prefix-range.ts";
import { literal } from "../sql/sql-names.ts";
import { isoText, COMPANION_NOW as NOW } from "./clock.ts";
import { page } from "./find.ts";
import { type MysqlNames, quoteName } from "./names.ts";

export const words: Words = {
  // The optimizer must see LIMITs and partitions, and drivers would send numbers as text.
  isNumberInText: true,
  parameter: () => "?",
  quoted: quoteName,
  text: "CHAR",
  textsBy: (key, number) => `CAST(JSON_OBJECTAGG(${key}, CAST(${number} AS CHAR)) AS CHAR)`,
  ...clockOf(NOW, isoText, literalOf),
  wallClock: literalOf,
  // A comment that the server executes, such as /*! or /*M!, is code.
  opaque: /'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`[^`]*`|--(?=\s)[^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?\*\//y,
  forUpdate: " FOR UPDATE",
  by: (index) => ` FORCE INDEX (${index})`,
  notById: " IGNORE INDEX (PRIMARY)",
  unsought: (column) => column,
  bytesOf: (text) => `CAST(${text} AS BINARY)`,
  indexOf: "INSTR",
  // A folding collation sorts differently from bytes. With a byte-wise column, LIKE on MariaDB
  // 10.11 misses characters behind U+FFFF.
  beginsWith: (column, prefix, isBytes) =>
    isBytes
      ? prefixRange(column, prefix)
      : part`${plain(column)} LIKE ${`${prefix.replace(/[%_!]/g, "!$&")}%`} ESCAPE '!'`,
  idIn: idInList,
  hasTable: (name) =>
    `(SELECT COUNT(*) FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = '${name}')`,
  // IGNORE, because a driver may count the row that ON DUPLICATE KEY UPDATE found.
  insertNew: "INSERT IGNORE INTO",
  orNothing: () => "",
  andRing: "",
  // A row comparison is not an index range here. With other conditions on the columns, the range
  // began at the start of a partition: 31,000 rows read for 1,000.
  behind: ([first, ...rest]) =>
    first === undefined
      ? plain("TRUE")
      : part`${plain(first[0])} >= ${first[1]} AND ${strictlyBehind([first, ...rest])}`,
  withKeys: keysInList,
  lookUp: (how, table, alias, on) => part`${plain(`${how} ${table} AS ${alias} FORCE INDEX (PRIMARY)`)} ON ${on}`,
  branch: (select) => part`(${select})`,
};

function literalOf(instant: string): string {
  return `TIMESTAMP'${instant}'`;
}

/** For a table whose instants are those of `now`. */
function clockOf(now: string, iso: Clock["iso"], instant: Clock["instant"]): Clock {
  return {
    now,
    iso,
    instant,
    after: (ms) => part`${plain(now)} + INTERVAL ${ms} * 1000 MICROSECOND`,
    msSince: (instant) => `GREATEST(0, TIMESTAMPDIFF(MICROSECOND, ${instant}, ${now}) DIV 1000)`,
    msUntil: (instant) => `TIMESTAMPDIFF(MICROSECOND, ${now}, ${instant}) DIV 1000`,
  };
}

function strictlyBehind([first, ...rest]: Place): Sql {
  if (first === undefined) return plain("FALSE");
  const [column, value] = [plain(first[0]), first[1]];
  if (rest.length === 0) return part`${column} > ${value}`;
  return part`(${column} > ${value} OR (${column} = ${value} AND ${strictlyBehind(rest)}))`;
}

export function tableWords(names: MysqlNames): TableWords {
  const { body, headers, layout, ofTopics, ofUtc, shardOf: shard } = names;
  const schema = layout.schema === undefined ? "DATABASE()" : literal(layout.schema);
  const rows = `(SELECT t.TABLE_ROWS FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = ${schema} AND t.TABLE_NAME = ${literal(layout.table)})`;
  const clock = clockOf(names.nowMs, names.iso, (utc) => ofUtc(literalOf(utc)));
  return { layout, words, clock, rows, shard, ofTopics, page, stored: { messageBody: body, headers } };
}
