/**
 * Checks whether columns keep written values, by comparing the layout's types of body and headers
 * with the table when a relay or a tool opens. An enqueuing program never inspects the table.
 */
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { INSTANTS } from "./sql-names.ts";

/**
 * What a type keeps. `text`, `json`, `binary`, `integer` and `instant`: such values unchanged.
 * `padded`: text without trailing blanks. `enum`: the words of its type, as in MySQL. `any`: every
 * value unchanged. `numeric`: numbers, including text that looks like one. `foreignClock`: instants
 * that a session's zone would shift. `other`: none of these.
 */
export type ColumnKind =
  | "text"
  | "padded"
  | "enum"
  | "json"
  | "binary"
  | "integer"
  | "numeric"
  | "instant"
  | "foreignClock"
  | "any"
  | "other";

export interface ColumnTypeWords {
  /** What a column of this type keeps, under the layout's clock. */
  columnKind(type: string): ColumnKind;
  /** Kinds that return text without trailing blanks unchanged. */
  readonly textKinds: readonly ColumnKind[];
  readonly instantKinds: readonly ColumnKind[];
  /** Fix for a column of the kind `foreignClock`. */
  readonly clockMend: string;
}

type Property = keyof LayoutColumns;

const INTEGERS: ReadonlySet<Property> = new Set(["retryCount", "deliveryCount", "lockVersion"]);

/** The problem of each column and its fix. `typeOf`: undefined = missing column. */
export function unfitColumns(
  layout: TableLayout,
  types: ColumnTypeWords,
  typeOf: (column: string) => string | undefined,
): string[] {
  return (Object.entries(layout.columns) as [Property, string | undefined][]).flatMap(([property, column]) => {
    const type = column === undefined ? undefined : typeOf(column);
    if (column === undefined || type === undefined) return [];
    const wayOut = wayOutOf(layout, types, property, type);
    return wayOut === undefined ? [] : [`column ${layout.table}.${column} is ${type}: ${wayOut}`];
  });
}

/** Undefined: the column keeps written values. */
function wayOutOf(layout: TableLayout, types: ColumnTypeWords, property: Property, type: string): string | undefined {
  const kind = types.columnKind(type);
  const named = `columns.${property}`;
  const isAny = kind === "any";
  if (property === "messageBody") return wayOutOfJson("bodyType", layout.bodyType, kind);
  if (property === "headers") return wayOutOfJson("headersType", layout.headersType, kind);
  if (property === "id") {
    if (kind === "integer") return undefined;
    return `${named} has to be an integer that grows with every insert; add such a column, and name it`;
  }
  if (INTEGERS.has(property)) {
    return kind === "integer" || kind === "numeric" || isAny ? undefined : `${named} has to be an integer`;
  }
  if (INSTANTS.has(property)) {
    if (types.instantKinds.includes(kind)) return undefined;
    return kind === "foreignClock" ? types.clockMend : `${named} has to hold instants; change its type`;
  }
  if (property === "state") return wayOutOfState(layout, types, type);
  if (types.textKinds.includes(kind)) return undefined;
  return `${named} has to be text that comes back as it was written; change its type to varchar, or name another column`;
}

function wayOutOfJson(option: string, said: TableLayout["bodyType"], kind: ColumnKind): string | undefined {
  const fits = kind === "any" || kind === said || (said === "json" && kind === "text");
  if (fits) return undefined;
  const known: readonly ColumnKind[] = option === "bodyType" ? ["text", "json", "binary"] : ["text", "json"];
  return known.includes(kind)
    ? `the layout says ${option} ${JSON.stringify(said)}; say ${option}: "${kind}" (createLayout, or the layout's file)`
    : `the layout says ${option} ${JSON.stringify(said)}, and it keeps no such value as it is; change its type`;
}

function wayOutOfState({ states }: TableLayout, types: ColumnTypeWords, type: string): string | undefined {
  const kind = types.columnKind(type);
  if (typeof states.pending === "number") {
    if (kind === "integer" || kind === "numeric" || kind === "any") return undefined;
    return 'the states of the layout are numbers; give them as words ("0"), or make it an integer';
  }
  if (kind === "enum") {
    const lacking = Object.values(states).filter((word) => !type.includes(`'${String(word).replaceAll("'", "''")}'`));
    return lacking.length === 0 ? undefined : `it lacks states of the layout: ${lacking.join(", ")}; add these words`;
  }
  if (types.textKinds.includes(kind)) return undefined;
  return "the states of the layout are words; give them as numbers, or make it varchar";
}
