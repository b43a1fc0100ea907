/** MySQL's error numbers, found wherever a driver or an ORM keeps the original error. */
import {
  ConfigurationError,
  DatabaseConflictError,
  DatabaseUnavailableError,
  describeError,
  PermissionError,
  RowpostError,
  SchemaError,
} from "../../runtime/errors.ts";
import { tlsFailure } from "../sql/tls-failure.ts";

/**
 * Where wrappers keep the original error: most in `cause`, Sequelize in `parent`/`original`,
 * TypeORM in `driverError`, Prisma in `meta`/`driverAdapterError`.
 */
const INNER = ["cause", "parent", "original", "driverError", "meta", "driverAdapterError"] as const;

/**
 * The server's error number, or 0. By number, because mysql2 shows some of MariaDB's under wrong
 * names.
 */
export function errorNumber(error: unknown): number {
  let found = 0;
  visit(error, (each) => {
    const { errno, originalCode } = each;
    if (typeof errno === "number" && errno > 0) found = errno;
    else if (typeof originalCode === "string" && /^\d+$/.test(originalCode)) found = Number(originalCode);
    return found !== 0;
  });
  return found;
}

export function errorMentions(error: unknown, text: string): boolean {
  return visit(error, ({ message }) => typeof message === "string" && message.includes(text));
}

function errorCodes(error: unknown): readonly string[] {
  const codes: string[] = [];
  visit(error, ({ code }) => {
    if (typeof code === "string") codes.push(code);
    return false;
  });
  return codes;
}

function visit(error: unknown, look: (error: Record<string, unknown>) => boolean, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > 5) return false;
  const each = error as Record<string, unknown>;
  if (look(each)) return true;
  return INNER.some((property) => visit(each[property], look, depth + 1));
}

const DUPLICATE = new Set([1062, 1586, 1859]);
/**
 * Deadlock; lock wait time-out; record changed since last read (MariaDB's snapshot isolation);
 * NOWAIT.
 */
const CONFLICT = new Set([1213, 1205, 1020, 3572]);
/** InnoDB has no memory for more locks and rolls the whole transaction back. */
const LOCK_TABLE_FULL = 1206;
/** The server stopped a statement at its time limit: max_statement_time, max_execution_time. */
const STOPPED = new Set([1969, 3024]);
/**
 * The server is going away or full: shutdown, killed, idle too long, too many connections,
 * read-only after a fail-over, MySQL's offline mode (3032), network read and write errors. Without
 * 1317: KILL QUERY ends a statement without effect, but the connection stays usable.
 */
const AWAY = new Set([
  ...[1040, 1053, 1077, 1079, 1080, 1152, 1153, 1156, 1157, 1158, 1159, 1160, 1161, 1203, 1290, 1792, 1836, 1927],
  ...[3032, 4031],
]);
const AWAY_CODES = new Set([
  "PROTOCOL_CONNECTION_LOST",
  "PROTOCOL_SEQUENCE_TIMEOUT",
  "PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR",
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "HANDSHAKE_SSL_ERROR",
  "ER_CMD_CONNECTION_CLOSED",
  "ER_CONNECTION_ALREADY_CLOSED",
  "ER_CONNECTION_TIMEOUT",
  "ER_SOCKET_UNEXPECTED_CLOSE",
  "ER_SOCKET_TIMEOUT",
  "ER_CLIENT_SOCKET_TIMEOUT",
]);

export function isDuplicate(error: unknown): boolean {
  return DUPLICATE.has(errorNumber(error)) || errorCodes(error).includes("P2002");
}

function isConflict(error: unknown): boolean {
  return CONFLICT.has(errorNumber(error));
}

/** Whether the connection, or the server behind it, is gone or unusable. */
export function isAway(error: unknown): boolean {
  if (AWAY.has(errorNumber(error))) return true;
  if (errorCodes(error).some((code) => AWAY_CODES.has(code))) return true;
  return error instanceof Error && /closed state|connection is closed|socket has unexpectedly/i.test(error.message);
}

/**
 * Errors that end the whole transaction on the server (rule: ended-transaction): 1213, 1020, and a
 * lost connection. 1205 rolls back only its statement unless innodb_rollback_on_timeout is on,
 * which the client cannot see, so it counts too.
 */
export function endsTransaction(error: unknown): boolean {
  return isConflict(error) || isAway(error) || errorNumber(error) === LOCK_TABLE_FULL;
}

/**
 * One row's value: data truncated, cut or out of range, a string invalid for the character set,
 * NULL, a CHECK (MySQL, MariaDB), a foreign key, SIGNAL in a trigger.
 */
const REFUSED = new Set([1048, 1216, 1217, 1264, 1265, 1366, 1406, 1451, 1452, 1644, 3819, 3854, 3988, 4025]);
/** A computed number is out of range, such as the highest BIGINT + 1. */
const OUT_OF_RANGE = 1690;

/**
 * Whether the table refuses this one row. A SIGNAL may have its own number, but nearly always a
 * SQLSTATE of class 45.
 */
export function isRowRefused(error: unknown): boolean {
  const number = errorNumber(error);
  if (REFUSED.has(number) || isDuplicate(error)) return true;
  // With EXP it is the session check of an INSERT (see `checked`).
  if (number === OUT_OF_RANGE) return !errorMentions(error, "exp(");
  return visit(error, ({ sqlState }) => typeof sqlState === "string" && sqlState.startsWith("45"));
}

/**
 * A column's character set lacks a letter of a value or of a compared text. Not every error names
 * the letter.
 */
const LETTER_LACKING = new Set([1267, 1270, 1366, 3854, 3988]);

/** The letter that the character set lacks; "" if not named (3854 shows the whole value). */
export function lackedLetter(error: unknown): string | undefined {
  const number = errorNumber(error);
  if (!LETTER_LACKING.has(number)) return undefined;
  if (number !== 1366) return "";
  let letter: string | undefined;
  visit(error, ({ message }) => {
    const [bytes] = /(?:\\x[\da-f]{2})+/i.exec(typeof message === "string" ? message : "") ?? [];
    if (bytes !== undefined) [letter] = Buffer.from(bytes.replaceAll("\\x", ""), "hex").toString();
    return bytes !== undefined;
  });
  // Without bytes the error is about a number.
  return letter;
}

/** Denied: database, table, column, routine, a server-wide privilege. */
const DENIED = new Set([1044, 1142, 1143, 1370, 1227]);
/** No such table, no such column. */
const ABSENT = new Set([1146, 1054]);

/** The connection has no database selected. */
const NO_DATABASE = 1046;

export function isTableMissing(error: unknown): boolean {
  return errorNumber(error) === 1146;
}

/** Our error for missing tables, columns or privileges; undefined for any other error. */
export function lackOf(error: unknown, statement: string): RowpostError | undefined {
  const number = errorNumber(error);
  const said = `${statement}: ${describeError(error)}`;
  if (DENIED.has(number)) return new PermissionError(said, { cause: error });
  if (number === NO_DATABASE) {
    return new ConfigurationError(
      `${said}: name the database of the tables in the URL (mysql://host/DATABASE), in the options, or with USE`,
      { cause: error },
    );
  }
  if (!ABSENT.has(number)) return undefined;
  return new SchemaError(`${said}; "rowpost migrate" makes what is missing, and queue.migrate() what the queue lacks`, {
    cause: error,
  });
}

/** Translates a driver's error where we have one for it; returns any other unchanged. */
export function translateError(error: unknown, statement: string): unknown {
  if (error instanceof RowpostError) return error;
  const failure = tlsFailure(error, statement, { trust: "ssl-ca=PATH" });
  if (failure !== undefined) return failure;
  if (isAway(error)) {
    return new DatabaseUnavailableError(
      `${statement}: the connection to the database is gone (${describeError(error)})`,
      { cause: error },
    );
  }
  if (STOPPED.has(errorNumber(error))) {
    return new DatabaseUnavailableError(`${statement}: timed out, and stopped by the server`, { cause: error });
  }
  if (isConflict(error)) {
    return new DatabaseConflictError(`${statement}: another transaction was in the way (${describeError(error)})`, {
      cause: error,
    });
  }
  return lackOf(error, statement) ?? error;
}
