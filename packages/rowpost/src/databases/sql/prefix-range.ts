/** Texts that begin alike, as a range of an index. */
import { part, plain, type Sql } from "./cold.ts";

const LAST_CODE_POINT = 0x10ffff;

/** Texts that begin with this one, where the column compares bytes. */
export function prefixRange(column: string, prefix: string): Sql {
  const end = behindPrefix(prefix);
  const from = part`${plain(column)} >= ${prefix}`;
  return end === undefined ? from : part`${from} AND ${plain(column)} < ${end}`;
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
