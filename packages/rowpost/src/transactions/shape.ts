/**
 * Telling handles apart by their shape. No driver or ORM is imported for it: `instanceof` fails as
 * soon as a program has two copies of a package, and an import would load a driver that the user
 * may not have.
 */
import { TransactionRequiredError } from "../runtime/errors.ts";
import type { QueryResult } from "./executor.ts";

/** An object or function whose properties may be looked at. */
export type Shape = Readonly<Record<PropertyKey, unknown>>;

/** The value as something with properties, or undefined. */
export function shapeOf(value: unknown): Shape | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return value as Shape;
}

/** True when all of these properties are functions. */
export function hasMethods(shape: Shape, ...names: readonly string[]): boolean {
  return names.every((name) => typeof shape[name] === "function");
}

/**
 * The error for a handle that was recognized but is not an open transaction. `what` it is, and what
 * to do `instead`.
 */
export function refusal(what: string, instead: string): TransactionRequiredError {
  return new TransactionRequiredError(`this is ${what}, not an open transaction: ${instead}. Nothing was written.`);
}

/** The error for a transaction that has been committed or rolled back already. */
export function finished(what: string, cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    `this ${what} has ended already: put await before outbox.enqueue, so that it is done before the commit (or the transaction was kept after its end, or its time ran out). Nothing was written.`,
    { cause },
  );
}

/**
 * True for a statement that answers with rows: SELECT and the like, and RETURNING. For drivers and
 * ORMs with one call for each kind.
 */
export function returnsRows(text: string): boolean {
  return /^[\s(]*(?:select|with|values|show|explain|pragma)\b/i.test(text) || /\breturning\b/i.test(text);
}

const NO_ROWS: QueryResult["rows"] = [];

/** Rows of a driver's answer, and the count of rows of a statement that has none. */
export function queryResult(rows: unknown, affected: unknown): QueryResult {
  const list = Array.isArray(rows) ? (rows as QueryResult["rows"]) : NO_ROWS;
  const count = typeof affected === "bigint" ? Number(affected) : affected;
  return { rows: list, affected: typeof count === "number" ? count : list.length };
}
