/** PostgreSQL's SQLSTATEs as the errors that the flow understands. */
import {
  DatabaseConflictError,
  DatabaseUnavailableError,
  describeError,
  PermissionError,
  RowpostError,
  SchemaError,
} from "../../runtime/errors.ts";
import { WITHOUT_KEY } from "../sql/table-findings.ts";
import { tlsFailure } from "../sql/tls-failure.ts";

/** Prisma's own codes, around the server's; the SQLSTATEs of class P are P0001 to P0004. */
const PRISMA = /^P[12]\d{3}$/;

/** SQLSTATE, or a code of Node's such as ECONNRESET; found through the wrappers of ORMs. */
export function errorCode(error: unknown, depth = 0): string | undefined {
  if (typeof error !== "object" || error === null || depth > 5) return undefined;
  const { code, originalCode } = error as { readonly code?: unknown; readonly originalCode?: unknown };
  if (typeof code === "string" && !PRISMA.test(code)) return code;
  if (typeof originalCode === "string") return originalCode;
  for (const inner of ["cause", "driverError", "original", "parent", "meta", "driverAdapterError"]) {
    const found = errorCode(Reflect.get(error, inner), depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Serialization failure, deadlock, lock wait over (lock_timeout, NOWAIT). Each undoes its
 * statement, and with it the transaction.
 */
const CONFLICT: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);

/** A write where none is taken. */
const READ_ONLY = "25006";

/**
 * The server goes, or has no room, or is not the one that takes writes: shutdown, crash of another
 * backend, starting up, too many connections, idle time-outs, read-only after a fail-over. 57014 is
 * a statement that ran into statement_timeout, or that somebody cancelled.
 */
const AWAY: ReadonlySet<string> = new Set([
  "57P01",
  "57P02",
  "57P03",
  "57P04",
  "57P05",
  "57014",
  "53300",
  "25P03",
  READ_ONLY,
  "53400",
]);

/** The connection, or the server behind it, is gone or will not work any more. */
export function isAway(error: unknown): boolean {
  const code = errorCode(error);
  if (code !== undefined && (AWAY.has(code) || code.startsWith("08") || /^E[A-Z_]+$/.test(code))) return true;
  // pg's own errors carry no code: the socket was closed under a query, or the client was used
  // after its end.
  return (
    error instanceof Error &&
    /^Connection terminated|^Client was closed|^Client has encountered|timeout expired|timeout exceeded/.test(
      error.message,
    )
  );
}

/**
 * Of a prepared statement, before anything is done: ALTER TABLE has changed the type of a column
 * that it returns (0A000), or DISCARD, DEALLOCATE or a pooler has taken it away (26000).
 */
export function isOutdatedPlan(error: unknown): boolean {
  const code = errorCode(error);
  return code === "0A000" || code === "26000";
}

/**
 * Is it one row that the table does not take? Data errors such as 22001 (too long) and 22P05 (not
 * in the database's encoding), constraints, a view's CHECK OPTION, RAISE in a trigger.
 */
export function isRowRefused(error: unknown): boolean {
  return /^(22|23|44|P0001)/.test(errorCode(error) ?? "");
}

/** The letter that the database's encoding lacks, where that is the error. */
export function lackedLetter(error: unknown): string | undefined {
  if (errorCode(error) !== "22P05") return undefined;
  // In every language of the server.
  const bytes = /0x[\da-f]{2}(?: 0x[\da-f]{2})*/i.exec(describeError(error))?.[0].split(" ").map(Number);
  return bytes && Buffer.from(bytes).toString();
}

/** Is a table not there? A session of ours says so with a SchemaError around the server's words. */
export function isTableMissing(error: unknown): boolean {
  return errorCode(error instanceof SchemaError ? error.cause : error) === "42P01";
}

/** What the tables or the rights on them lack, as an error of ours; undefined for anything else. */
export function lackOf(error: unknown, statement: string): RowpostError | undefined {
  const code = errorCode(error);
  const said = `${statement}: ${describeError(error)}`;
  if (code === "42501") return new PermissionError(said, { cause: error });
  // No index fits the ON CONFLICT.
  if (code === "42P10" && statement === "enqueue") return new SchemaError(WITHOUT_KEY, { cause: error });
  if (code !== "42P01" && code !== "42703") return undefined;
  return new SchemaError(`${said}; "rowpost migrate" makes what is missing, and queue.migrate() what the queue lacks`, {
    cause: error,
  });
}

/** A driver's error as one of ours, where it means one; anything else as it is. */
export function translateError(error: unknown, statement: string): unknown {
  if (error instanceof RowpostError) return error;
  const failure = tlsFailure(error, statement, { trust: "sslmode=verify-full&sslrootcert=PATH" });
  if (failure !== undefined) return failure;
  const code = errorCode(error);
  if (code === READ_ONLY) {
    return new DatabaseUnavailableError(
      `${statement}: the database takes no writes now, because it is a replica or default_transaction_read_only is on (${describeError(error)})`,
      { cause: error },
    );
  }
  if (isAway(error)) {
    return new DatabaseUnavailableError(
      `${statement}: the database did not answer, or the connection is gone (${describeError(error)})`,
      { cause: error },
    );
  }
  if (code !== undefined && CONFLICT.has(code)) {
    return new DatabaseConflictError(`${statement}: another transaction was in the way (${describeError(error)})`, {
      cause: error,
    });
  }
  if (code === "42501" && /row-level security/.test(describeError(error))) {
    return new SchemaError(
      `${statement}: ${describeError(error)}; rows that a policy hides would never be sent, so this role needs to own the table, or BYPASSRLS`,
      { cause: error },
    );
  }
  return lackOf(error, statement) ?? error;
}
