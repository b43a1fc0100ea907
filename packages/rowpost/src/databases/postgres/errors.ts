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

/** Prisma's own codes around the server's; SQLSTATEs of class P are P0001 to P0004. */
const PRISMA = /^P[12]\d{3}$/;

/** SQLSTATE or a Node code such as ECONNRESET, found through the wrappers of ORMs. */
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
 * transaction.
 */
const CONFLICT: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);

/** A write on a read-only server. */
const READ_ONLY = "25006";

/**
 * The server is going away, full, or refuses writes: shutdown, crash of another backend, starting
 * up, too many connections, idle time-outs, read-only after a fail-over. 57014: canceled or ran
 * into statement_timeout.
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

/** Whether the connection, or the server behind it, is gone or unusable. */
export function isAway(error: unknown): boolean {
  const code = errorCode(error);
  if (code !== undefined && (AWAY.has(code) || code.startsWith("08") || /^E[A-Z_]+$/.test(code))) return true;
  // pg's own errors carry no code: the socket closed during a query, or the client had ended.
  return (
    error instanceof Error &&
    /^Connection terminated|^Client was closed|^Client has encountered|timeout expired|timeout exceeded/.test(
      error.message,
    )
  );
}

/**
 * A prepared statement failed before it ran: ALTER TABLE changed a returned column's type (0A000),
 * or DISCARD, DEALLOCATE or a pooler removed it (26000).
 */
export function isOutdatedPlan(error: unknown): boolean {
  const code = errorCode(error);
  return code === "0A000" || code === "26000";
}

/**
 * Whether the table refuses this one row: data errors such as 22001 (too long) and 22P05 (not in
 * the database's encoding), constraints, a view's CHECK OPTION, RAISE in a trigger.
 */
export function isRowRefused(error: unknown): boolean {
  return /^(22|23|44|P0001)/.test(errorCode(error) ?? "");
}

/** The letter that the database's encoding lacks, if that is the error. */
export function lackedLetter(error: unknown): string | undefined {
  if (errorCode(error) !== "22P05") return undefined;
  // Works in every server language.
  const bytes = /0x[\da-f]{2}(?: 0x[\da-f]{2})*/i.exec(describeError(error))?.[0].split(" ").map(Number);
  return bytes && Buffer.from(bytes).toString();
}

/** Our sessions wrap this error in a SchemaError. */
export function isTableMissing(error: unknown): boolean {
  return errorCode(error instanceof SchemaError ? error.cause : error) === "42P01";
}

/** Our error for missing tables, columns or privileges; undefined for any other error. */
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

/** Translates a driver's error where we have one for it; returns any other unchanged. */
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
