/** PostgreSQL syntax for the words of sql/cold.ts. */
import { behindRow, decimal, part, plain, type Words } from "../sql/cold.ts";
import type { TableWords } from "../sql/cold-table.ts";
import { prefixRange } from "../sql/prefix-range.ts";
import { literal, quoteName, withoutEngineColumns } from "../sql/sql-names.ts";
import { page, waysTo } from "./find.ts";
import { isoText, msBetween, msSince, type Names, NOW, numberArray, textArray } from "./names.ts";
import { QUEUE_CHANNEL } from "./queue/append.ts";

export const words: Words = {
  isNumberInText: false,
  parameter: (place, value) => (value !== null && typeof value === "object" ? `$${place}::bigint` : `$${place}`),
  quoted: quoteName,
  text: "text",
  textsBy: (key, number) => `json_object_agg(${key}, ${number}::text)::text`,
  now: NOW,
  after: (ms) => part`${plain(NOW)} + ${ms} * interval '1 millisecond'`,
  instant: (utc) => `'${utc}Z'::timestamptz`,
  iso: isoText,
  msSince: (instant) => `CASE WHEN ${instant} IS NOT NULL THEN ${msSince(instant)} END`,
  wallClock: (text) => `TIMESTAMP '${text}'`,
  // A double colon is a cast. A dollar within a name starts no text. Comments nested more than one
  // level are refused.
  opaque:
    /[eE]'(?:[^'\\]|''|\\[\s\S])*'|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*(?:(?!\/\*|\*\/)[\s\S]|\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\/)*\*\/|\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?\$\1\$|::/y,
  msUntil: (instant) => msBetween(NOW, instant),
  forUpdate: " FOR UPDATE",
  // There are no hints; sessions plan without sequential and bitmap scans.
  by: () => "",
  notById: "",
  unsought: (column) => column,
  bytesOf: (text) => `${text} COLLATE "C"`,
  indexOf: "strpos",
  // With another collation of a user's own table this finds the same rows, without its index.
  beginsWith: (column, prefix) => prefixRange(`${column} COLLATE "C"`, prefix),
  idIn: (column, ids) => `${column} = ANY ('${numberArray(ids.map(decimal))}'::bigint[])`,
  hasTable: (name) => `CASE WHEN to_regclass('${name}') IS NULL THEN 0 ELSE 1 END`,
  insertNew: "INSERT INTO",
  orNothing: (key) => ` ON CONFLICT (${key}) DO NOTHING`,
  andRing: ` RETURNING pg_notify('${QUEUE_CHANNEL}', '') IS NULL AS rung`,
  behind: behindRow,
  // LATERAL with LIMIT looks up each row by its whole key. Before ANALYZE, PostgreSQL 18 read all
  // partitions and redeliveries of a topic per row.
  lookUp: (how, table, alias, on) =>
    part`${plain(`${how} LATERAL (SELECT * FROM ${table} AS ${alias}`)} WHERE ${on} LIMIT 1${plain(`) AS ${alias} ON TRUE`)}`,
  // Before ANALYZE, a list or a join filters all rows of the type. OFFSET 0 forces one index lookup
  // per key.
  withKeys: ({ from, key, keys, where }) =>
    part`FROM unnest(${textArray(keys)}::text[]) AS wanted (key)
CROSS JOIN LATERAL (SELECT * FROM ${from} WHERE ${where} AND ${key} = wanted.key OFFSET 0) AS m`,
  branch: (select) => part`(${select})`,
};

export function tableWords(names: Names): TableWords {
  const { body: messageBody, headers, ofTopics, shard } = names;
  // reltuples is -1 before ANALYZE.
  const rows = `(SELECT CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END FROM pg_catalog.pg_class AS c WHERE c.oid = to_regclass(${literal(names.table)}))`;
  const layout = withoutEngineColumns(names.layout);
  return { layout, words, rows, shard, ofTopics, page, waysTo, stored: { messageBody, headers } };
}
