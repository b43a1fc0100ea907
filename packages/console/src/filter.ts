/** The filter line, `topic:orders state:failed after:2d`, and its query. Pure. */
import type { QueryOf } from "rowpost-server/api";
import type { Dictionary } from "./language/en.ts";

type FilterName = "word" | Exclude<keyof QueryOf<"messages">, "limit" | "cursor" | "budgetMs">;

/** A search, as in the addresses of the page and the API. */
export type MessageQuery = Partial<Record<FilterName, string>>;

const NAMES: readonly FilterName[] = [
  ...(["word", "topic", "type", "key", "keyPrefix", "orderingKey"] as const),
  ...(["state", "reason", "after", "before", "in"] as const),
];

/** Names in the line that differ from those of the API. */
const SHORT: Readonly<Record<string, FilterName>> = { order: "orderingKey", orderingKey: "orderingKey" };
const STATES = ["pending", "sending", "sent", "failed", "consumed", "suspended"] as const;
const SPAN = /^(\d{1,6})(s|m|h|d)$/;
const SPAN_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type Wrong = Dictionary["messages"]["wrong"];

/** An invalid line; `told` words it in a language. */
export class FilterError extends Error {
  readonly about: keyof Wrong;
  readonly what: string;

  constructor(about: keyof Wrong, what: string) {
    super(`${about}: ${what}`);
    this.name = "FilterError";
    this.about = about;
    this.what = what;
  }

  told(wrong: Wrong): string {
    return wrong[this.about](this.what);
  }
}

export function queryOf(parameters: URLSearchParams): MessageQuery {
  const pairs = NAMES.flatMap((name) => {
    const value = parameters.get(name);
    return value === null || value === "" ? [] : [[name, value] as const];
  });
  return Object.fromEntries(pairs);
}

/**
 * Reads a line. Words without a name are one word, tried as an id, then as a key. A state may be
 * named in any language (`stateWords`). Throws a {@link FilterError}.
 */
export function parseFilter(line: string, stateWords: readonly Dictionary["states"][], now = Date.now()): MessageQuery {
  const query: MessageQuery = {};
  const bare: string[] = [];
  for (const [whole, name, quoted, plain] of line.matchAll(/(?:([A-Za-z]+)[:：])?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    const value = quoted === undefined ? (plain ?? "") : quoted.replace(/\\(.)/g, "$1");
    const field = name === undefined ? undefined : fieldNamed(name);
    if (field === undefined) {
      // A key may hold a colon, so the text before it need not be a filter's name.
      bare.push(name === undefined ? value : whole);
      continue;
    }
    const meant = meaningOf(field, value, { isQuoted: quoted !== undefined, stateWords, now });
    const [into, text] = meant;
    if (query[into] !== undefined) throw new FilterError("twice", name ?? into);
    query[into] = text;
  }
  if (bare.length === 0) return query;
  const word = bare.join(" ");
  // Beside other filters it can only be a key.
  if (Object.keys(query).length === 0) return { word };
  if (query.key !== undefined || query.keyPrefix !== undefined) throw new FilterError("twice", "key");
  return { ...query, key: word };
}

interface Reading {
  readonly isQuoted: boolean;
  readonly stateWords: readonly Dictionary["states"][];
  readonly now: number;
}

function fieldNamed(name: string): FilterName | undefined {
  return SHORT[name] ?? NAMES.find((known) => known === name);
}

function meaningOf(field: FilterName, value: string, { isQuoted, now, stateWords }: Reading): [FilterName, string] {
  if (field === "key" && value.endsWith("*") && !isQuoted) return ["keyPrefix", value.slice(0, -1)];
  if (field === "state")
    return [
      field,
      value
        .split(/[,，]/)
        .map((word) => stateOf(word, stateWords))
        .join(","),
    ];
  if (field === "after" || field === "before") return [field, instantOf(value, now)];
  if (field === "in" && !/^(live|archive)(,(live|archive))?$/.test(value)) throw new FilterError("place", value);
  return [field, value];
}

function stateOf(word: string, stateWords: readonly Dictionary["states"][]): string {
  const found = STATES.find((state) => state === word || stateWords.some((words) => words[state] === word));
  if (found === undefined) throw new FilterError("state", word);
  return found;
}

/** An age, a day, or an instant; UTC without a zone. */
function instantOf(text: string, now: number): string {
  const [, number, unit] = SPAN.exec(text) ?? [];
  if (number !== undefined) return new Date(now - Number(number) * SPAN_MS[unit as keyof typeof SPAN_MS]).toISOString();
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text);
  const at = new Date(/T/.test(text) && !hasZone ? `${text}Z` : text);
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(at.getTime())) throw new FilterError("instant", text);
  return at.toISOString();
}

export function filterLine(query: MessageQuery): string {
  return chipsOf(query)
    .map(({ text }) => text)
    .join(" ");
}

export interface Chip {
  readonly name: FilterName;
  readonly text: string;
}

export function chipsOf(query: MessageQuery): Chip[] {
  return NAMES.flatMap((name): Chip[] => {
    const value = query[name];
    if (value === undefined || value === "") return [];
    if (name === "word") return [{ name, text: quoted(value, false, /^\w+[:：]/.test(value)) }];
    if (name === "keyPrefix") return [{ name, text: `key:${value}*` }];
    return [{ name, text: `${name === "orderingKey" ? "order" : name}:${quoted(value, name === "key")}` }];
  });
}

function quoted(value: string, isKey = false, looksNamed = false): string {
  const isPlain = !looksNamed && !/[\s"]/.test(value) && !(isKey && value.endsWith("*"));
  return isPlain ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}
