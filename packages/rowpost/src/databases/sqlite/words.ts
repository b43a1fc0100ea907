/** SQLite syntax for the words of sql/cold.ts. */
import { behindRow, idInList, keysInList, part, plain, type Words } from "../sql/cold.ts";
import type { TableWords } from "../sql/cold-table.ts";
import { prefixRange } from "../sql/prefix-range.ts";
import { literal, quoteName, withoutEngineColumns } from "../sql/sql-names.ts";
import { page } from "./find.ts";
import { isoText, msSince, type Names, NOW } from "./names.ts";

export const words: Words = {
  isNumberInText: false,
  parameter: (_place, value) => (value !== null && typeof value === "object" ? "CAST(? AS INTEGER)" : "?"),
  quoted: quoteName,
  text: "TEXT",
  textsBy: (key, number) => `json_group_object(${key}, CAST(${number} AS TEXT))`,
  now: NOW,
  after: (ms) => part`strftime('%Y-%m-%d %H:%M:%f', 'now', (${ms} / 1000.0) || ' seconds')`,
  instant: literal,
  iso: isoText,
  msSince: (instant) => `max(0, ${msSince(instant)})`,
  wallClock: literal,
  opaque: /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\//y,
  msUntil: (instant) => `-${msSince(instant)}`,
  // Our transaction has the file's only write lock.
  forUpdate: "",
  by: () => "",
  notById: "",
  unsought: (column) => `+${column}`,
  bytesOf: (text) => `${text} COLLATE BINARY`,
  indexOf: "instr",
  beginsWith: prefixRange,
  idIn: idInList,
  hasTable: (name) => `(SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '${name}')`,
  insertNew: "INSERT INTO",
  orNothing: (key) => ` ON CONFLICT (${key}) DO NOTHING`,
  andRing: "",
  behind: behindRow,
  withKeys: keysInList,
  lookUp: (how, table, alias, on) => part`${plain(`${how} ${table} AS ${alias}`)} ON ${on}`,
  // SQLite allows no bracketed SELECT in a UNION.
  branch: (select) => part`SELECT * FROM (${select})`,
};

export function tableWords(names: Names): TableWords {
  const { body: messageBody, column, headers, ofTopics, table } = names;
  // Without statistics, assumes ids without gaps, which rather overestimates. Two lookups.
  const rows = `min(COALESCE((SELECT max(${column.id}) FROM ${table}) - (SELECT min(${column.id}) FROM ${table}) + 1, 0), ${Number.MAX_SAFE_INTEGER})`;
  const layout = withoutEngineColumns(names.layout);
  return { layout, words, rows, shard: "0", ofTopics, page, stored: { messageBody, headers } };
}
