/**
 * Recognizes handles by their shape. `instanceof` fails with two copies of a package, and an import
 * would load a driver that the user may not have.
 */
import { TransactionRequiredError } from "../runtime/errors.ts";
import type { QueryResult } from "./executor.ts";

/** An object or function with readable properties. */
export type Shape = Readonly<Record<PropertyKey, unknown>>;

export function shapeOf(value: unknown): Shape | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return value as Shape;
}

/** True if all of these properties are functions. */
export function hasMethods(shape: Shape, ...names: readonly string[]): boolean {
  return names.every((name) => typeof shape[name] === "function");
}

/**
 * Error for a recognized handle that is not an open transaction: `what` it is, and what to do
 * `instead`.
 */
export function refusal(what: string, instead: string): TransactionRequiredError {
  return new TransactionRequiredError(`this is ${what}, not an open transaction: ${instead}. Nothing was written.`);
}

/** Error for a transaction already committed or rolled back. */
export function finished(what: string, cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    `this ${what} has ended already: put await before outbox.enqueue, so that it is done before the commit (or the transaction was kept after its end, or its time ran out). Nothing was written.`,
    { cause },
  );
}

/**
 * True for a statement that returns rows (SELECT and the like, RETURNING), for drivers and ORMs
 * with separate calls.
 */
export function returnsRows(text: string): boolean {
  return /^[\s(]*(?:select|with|values|show|explain|pragma)\b/i.test(text) || /\breturning\b/i.test(text);
}

const NO_ROWS: QueryResult["rows"] = [];

/** Rows of a driver's answer, or the row count of a statement without rows. */
export function queryResult(rows: unknown, affected: unknown): QueryResult {
  const list = Array.isArray(rows) ? (rows as QueryResult["rows"]) : NO_ROWS;
  const count = typeof affected === "bigint" ? Number(affected) : affected;
  return { rows: list, affected: typeof count === "number" ? count : list.length };
}
