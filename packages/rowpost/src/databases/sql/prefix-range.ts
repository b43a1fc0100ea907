import { part, plain, type Sql } from "./cold.ts";

const LAST_CODE_POINT = 0x10ffff;

/** Range of texts with this prefix, if the column compares bytes. */
export function prefixRange(column: string, prefix: string): Sql {
  const end = behindPrefix(prefix);
  const from = part`${plain(column)} >= ${prefix}`;
  return end === undefined ? from : part`${from} AND ${plain(column)} < ${end}`;
}

/** The first text after all with this prefix; undefined if there is none. */
export function behindPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // Surrogates are no characters, and databases refuse them.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
