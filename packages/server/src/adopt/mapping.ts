/** Maps columns by name, comment, type and keys. Asks the user if two fit equally or none does. */
import type { LayoutColumns } from "rowpost";
import type { Catalog, Column } from "./catalog.ts";
import { KNOWN, type Known } from "./synonyms.ts";

export type Property = keyof LayoutColumns;

export interface Mapping {
  readonly columns: ReadonlyMap<Property, string>;
  readonly asked: readonly { readonly property: Property; readonly candidates: readonly string[] }[];
}

const SURE = 6;

export function mapColumns(catalog: Catalog, given: ReadonlyMap<Property, string> = new Map()): Mapping {
  const prefix = commonPrefix(catalog.columns.map(({ name }) => name));
  const columns = new Map(given);
  const free = (column: string): boolean => ![...columns.values()].includes(column);
  const scored = KNOWN.flatMap((known) =>
    catalog.columns.map((column) => ({ known, column: column.name, score: scoreOf(catalog, known, column, prefix) })),
  ).filter(({ score }) => score >= SURE);
  scored.sort((left, right) => right.score - left.score);
  const unsure = new Map<Property, readonly string[]>();
  for (const { column, known, score } of scored) {
    const { property } = known;
    if (columns.has(property) || unsure.has(property) || !free(column)) continue;
    const rivals = scored.filter((each) => each.known === known && each.score === score && free(each.column));
    // Another property fits this column equally.
    const other = scored.filter(
      (each) =>
        each.column === column && each.score === score && each.known !== known && !columns.has(each.known.property),
    );
    if (rivals.length > 1 || other.length > 0)
      unsure.set(
        property,
        rivals.map((each) => each.column),
      );
    else columns.set(property, column);
  }
  const asked = KNOWN.filter(({ isRequired, property }) => isRequired && !columns.has(property)).map((known) => {
    const fits = catalog.columns
      .filter(({ kind, name }) => known.kinds.includes(kind) && free(name))
      .map(({ name }) => name);
    return { property: known.property, candidates: unsure.get(known.property) ?? fits };
  });
  return { columns, asked };
}

function scoreOf(catalog: Catalog, known: Known, column: Column, prefix: string): number {
  if (!known.kinds.includes(column.kind)) return 0;
  // Only SQLite stores instants as text.
  if (known.kinds.includes("instant") && column.kind === "text" && catalog.dialect !== "sqlite") return 0;
  const isKey = catalog.primaryKey.length === 1 && catalog.primaryKey[0] === column.name;
  if (known.property === "id") return isKey ? 20 : 0;
  if (isKey) return 0;
  const names = [column.name, column.name.slice(prefix.length)].map(plainName);
  // Earlier names are likelier, and decide between two columns that both fit.
  const place = Math.min(
    ...names.map((name) => known.names.indexOf(name)).map((at) => (at < 0 ? Number.POSITIVE_INFINITY : at)),
  );
  const byName = Number.isFinite(place) ? 10 - place / 100 : 0;
  const byComment = known.comment.test(column.comment) ? 7 : 0;
  if (byName + byComment === 0) return 0;
  const isInUnique = catalog.uniques.some((unique) => unique.length <= 2 && unique.includes(column.name));
  const byKey = isInUnique && (known.property === "messageKey" || known.property === "messageType") ? 2 : 0;
  return byName + byComment + byKey;
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9\u4e00-\u9fff]/g, "");
}

function commonPrefix(names: readonly string[]): string {
  const [first = ""] = names;
  const [prefix = ""] = /^[a-z]{1,5}_/i.exec(first) ?? [];
  return prefix !== "" && names.every((name) => name.startsWith(prefix)) ? prefix : "";
}
