import {
  DatabaseConflictError,
  DatabaseUnavailableError,
  describeError,
  RowpostError,
  SchemaError,
} from "../../runtime/errors.ts";
import { WITHOUT_KEY } from "../sql/table-findings.ts";

const BUSY = 5;
const LOCKED = 6;
const TOO_BIG = 18;
const CONSTRAINT = 19;
/** I/O error, disk full, cannot open, corrupt, not a database, read-only, out of memory. */
const AWAY: ReadonlySet<number> = new Set([10, 13, 14, 11, 26, 8, 7]);

/**
 * Primary result code: `errcode` of node:sqlite and @photostructure/sqlite. better-sqlite3 has
 * names, of which only BUSY matters. An ORM keeps the error as its cause.
 */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode & 0xff;
  if ("code" in error && typeof error.code === "string") {
    if (error.code.startsWith("SQLITE_BUSY")) return BUSY;
    if (error.code.startsWith("SQLITE_LOCKED")) return LOCKED;
  }
  // @photostructure/sqlite, for a statement that returns rows.
  if (/^database (?:table |schema )?is locked/.test(error.message)) return BUSY;
  return resultCode(error.cause);
}

/** Whether the table refuses this one row: CHECK, unique key, RAISE in a trigger; too big. */
export function isRowRefused(error: unknown): boolean {
  const code = resultCode(error);
  return code === CONSTRAINT || code === TOO_BIG;
}

/** Another connection holds the lock. Nothing happened, and a retry helps. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

export function isTableMissing(error: unknown): boolean {
  return error instanceof Error && /no such table/.test(error.message);
}

/** Our error for missing tables or columns; undefined for any other error. */
export function lackOf(error: unknown, statement: string): RowpostError | undefined {
  if (error instanceof Error && /ON CONFLICT clause does not match/.test(error.message) && statement === "enqueue")
    return new SchemaError(WITHOUT_KEY, { cause: error });
  if (!(error instanceof Error) || !/no such (table|column)|has no column/.test(error.message)) return undefined;
  return new SchemaError(
    `${statement}: ${error.message}; "rowpost migrate" makes what is missing, and queue.migrate() what the queue lacks`,
    { cause: error },
  );
}

/** Translates SQLite's error where we have one for it; returns any other unchanged. */
export function translateError(error: unknown, statement: string): unknown {
  if (error instanceof RowpostError) return error;
  const code = resultCode(error);
  if (code === BUSY || code === LOCKED) {
    return new DatabaseConflictError(
      `${statement}: another connection kept the SQLite file locked (${describeError(error)})`,
      { cause: error },
    );
  }
  if (code !== undefined && AWAY.has(code)) {
    return new DatabaseUnavailableError(`${statement}: the SQLite file cannot be used (${describeError(error)})`, {
      cause: error,
    });
  }
  return lackOf(error, statement) ?? error;
}
