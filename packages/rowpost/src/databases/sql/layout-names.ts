/** Names of a layout's tables and columns, its state values, and their checks. */
import { MESSAGE_STATES } from "../../message/states.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { TableLayout } from "./layout.ts";

/** rowpost's own tables beside a message table, without schema and quotes. */
export interface CompanionTables {
  readonly shard: string;
  readonly relay: string;
  readonly suspension: string;
  readonly audit: string;
  readonly confirmation: string;
  readonly unmatched: string;
  readonly session: string;
  readonly alert: string;
  readonly silence: string;
  readonly migration: string;
  /**
   * One per message table, with that table's columns: ids of two tables would collide in a shared
   * one.
   */
  readonly archive: string;
}

export function companionTables(layout: Pick<TableLayout, "companion" | "table">): CompanionTables {
  return {
    shard: `${layout.companion}_shard`,
    relay: `${layout.companion}_relay`,
    suspension: `${layout.companion}_suspension`,
    audit: `${layout.companion}_audit`,
    confirmation: `${layout.companion}_confirmation`,
    unmatched: `${layout.companion}_unmatched`,
    session: `${layout.companion}_session`,
    alert: `${layout.companion}_alert`,
    silence: `${layout.companion}_silence`,
    migration: `${layout.companion}_migration`,
    archive: `${layout.table}_archive`,
  };
}

/** Tables of earlier versions, which migration 13 drops. */
export function formerTables({ companion }: Pick<TableLayout, "companion">): readonly string[] {
  return ["operation", "operation_batch", "operation_conflict"].map((name) => `${companion}_${name}`);
}

/** PostgreSQL silently cuts longer names; MySQL allows 64 characters. */
const LONGEST_NAME = 63;

/** Quotes and NUL would need escaping in every statement. */
function checkName(name: string, what: string, ends: readonly string[] = []): void {
  const behind = ends.reduce((longest, end) => (end.length > longest.length ? end : longest), "");
  const longest = LONGEST_NAME - behind.length;
  if (name.length === 0 || Buffer.byteLength(name) > longest || /["'`\\.\0]/.test(name)) {
    throw new ConfigurationError(
      `${what} ${JSON.stringify(name)} is not a usable name: 1 to ${longest} bytes of UTF-8${behind === "" ? "" : ` (${behind} stands behind it in another name)`}, no quotes, backslash or dot` +
        (what === "companion" ? "; companion is the table's name unless it is given" : ""),
    );
  }
}

/** Throws `ConfigurationError` for a name that no database accepts. */
export function checkNames(layout: TableLayout): void {
  const { archive, ...beside } = companionTables({ table: "", companion: "" });
  // PostgreSQL would mistake the cut index name for an existing one.
  checkName(layout.table, "table", [archive, "_waiting_topic"]);
  checkName(layout.companion, "companion", [...Object.values(beside), ...formerTables({ companion: "" })]);
  if (layout.schema !== undefined) checkName(layout.schema, "schema");
  for (const [property, column] of Object.entries(layout.columns)) {
    if (column !== undefined) checkName(String(column), `column ${property}`);
  }
}

/** Throws `ConfigurationError` for ambiguous states. */
export function checkStates(layout: TableLayout): void {
  const values = MESSAGE_STATES.map((state) => layout.states[state]);
  const kinds = new Set(values.map((value) => typeof value));
  const folded = new Set(values.map((value) => String(value).toLowerCase()));
  const whole = values.every((value) => typeof value === "string" || Number.isInteger(value));
  if (kinds.size !== 1 || folded.size !== values.length || !whole) {
    throw new ConfigurationError(
      "the states of a layout are six different whole numbers, or six words that differ by more than case",
    );
  }
  // A backslash starts an escape in MySQL's literals, unless a user's session says otherwise.
  if (values.some((value) => typeof value === "string" && !/^[^\\\0]{1,32}$/.test(value))) {
    throw new ConfigurationError("a word for a state has 1 to 32 characters, and no backslash");
  }
}
