/**
 * Relays that share a table by topic. Each list of topic patterns has its own lease rows, so relays
 * share work only with the same list.
 */
import { createHash } from "node:crypto";
import type { TableLayout } from "./layout.ts";
import { tableKey } from "./layouts.ts";

/** Topic patterns in which `*` matches any characters; undefined: every topic. */
export type OwnTopics = readonly string[] | undefined;

/** `table_name` in the lease rows and the registry of relays with these topics. */
export function leaseKey(layout: TableLayout, topics: OwnTopics): string {
  if (topics === undefined) return tableKey(layout);
  const hash = createHash("sha256").update(JSON.stringify([...topics].sort()));
  return `${tableKey(layout)}#${hash.digest("hex").slice(0, 12)}`;
}

/**
 * Condition that `table_name` is the lease key of a relay of this table, whatever its topics: the
 * table's own, or one between `#` and `$`, the next character. One range of the primary key.
 */
export function isLeaseKey(layout: TableLayout, literal: (text: string) => string): string {
  const key = tableKey(layout);
  const [own, mark, behind] = [literal(key), literal(`${key}#`), literal(`${key}$`)];
  return `table_name >= ${own} AND table_name < ${behind} AND (table_name = ${own} OR table_name > ${mark})`;
}

/** ` AND (…)`: the topic matches a pattern, byte for byte; "" for every topic. */
export function ofTopics(topics: OwnTopics, matches: (pattern: string) => string): string {
  return topics === undefined ? "" : ` AND (${topics.map(matches).join(" OR ")})`;
}

/** A pattern for LIKE, with `!` as escape. */
export function likePattern(pattern: string): string {
  return pattern.replace(/[!%_]/g, "!$&").replaceAll("*", "%");
}
