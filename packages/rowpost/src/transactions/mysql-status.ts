/**
 * Whether a MySQL connection is in a transaction. On MariaDB the INSERT checks it itself
 * (`@@in_transaction`). MySQL 8 and 9 have no expression for ordinary accounts, so this takes a
 * round trip before the INSERT (0.05 to 0.1 ms on one machine).
 */
import { ConfigurationError } from "../runtime/errors.ts";
import { type Shape, shapeOf } from "./shape.ts";

/** Flags of the OK packet, from the MySQL client/server protocol. */
const IN_TRANSACTION = 0x0001;
const AUTOCOMMIT = 0x0002;
const NO_BACKSLASH_ESCAPES = 0x0200;

/**
 * Whether a transaction is open, or autocommit is off: then the next statement opens one, and only
 * COMMIT commits.
 */
export function statusSaysOpen(status: number): boolean {
  return (status & IN_TRANSACTION) !== 0 || (status & AUTOCOMMIT) === 0;
}

/**
 * Under NO_BACKSLASH_ESCAPES a quote in a value that mysql2 writes into a statement ends the value
 * (rule: exact-text).
 */
export function requireBackslashEscapes(status: number): void {
  if ((status & NO_BACKSLASH_ESCAPES) !== 0) throw noBackslashEscapes();
}

function noBackslashEscapes(): ConfigurationError {
  return new ConfigurationError(
    "the sql_mode of this connection has NO_BACKSLASH_ESCAPES, under which mysql2 and what is built on it let a value end early and go on as SQL: take the mode out (SET SESSION sql_mode = …, or on the server). Nothing was written.",
  );
}

/** `serverStatus` of the OK packet of a statement without rows, if the driver or ORM returns it. */
export function okStatus(result: unknown): number | undefined {
  const status = shapeOf(result)?.["serverStatus"];
  return typeof status === "number" ? status : undefined;
}

/**
 * Its OK packet carries the status. It sets ROW_COUNT() to 1, which the next INSERT checks: the end
 * of a transaction sets 0.
 */
export const ASK_STATUS = "SELECT 0 INTO @rowpost_is_open";

/**
 * For handles that hide the OK packet. In a transaction SET TRANSACTION fails with error 1568 and
 * changes nothing; outside it sets the connection's next transaction to the default.
 */
export async function askBySetTransaction(run: (text: string) => Promise<unknown>): Promise<boolean> {
  try {
    await run("SET TRANSACTION READ WRITE");
    return false;
  } catch (error) {
    if (hasErrorNumber(error, TRANSACTION_IN_PROGRESS)) return true;
    throw error;
  }
}

/** Keyed by an object that lives as long as the user's pool or ORM. */
const mariadbByOwner = new WeakMap<object, boolean>();

/** True if {@link isMariadb} found so before. */
export function knownMariadb(owner: unknown): boolean {
  const key = shapeOf(owner);
  return key !== undefined && mariadbByOwner.get(key) === true;
}

/**
 * For ORMs: whether the server is MariaDB, where the INSERT checks itself. One SELECT per lifetime
 * of `owner`, which all transactions of the ORM share, or each time if it is hidden. Also refuses
 * NO_BACKSLASH_ESCAPES before the ORM's first value.
 */
export async function isMariadb(owner: unknown, ask: (text: string) => Promise<unknown>): Promise<boolean> {
  const key = shapeOf(owner);
  const known = key && mariadbByOwner.get(key);
  if (known !== undefined) return known;
  const version = findVersion(await ask(ASK_VERSION));
  if (version?.startsWith(REFUSED) === true) throw noBackslashEscapes();
  const mariadb = version !== undefined && /mariadb/i.test(version);
  if (key !== undefined) mariadbByOwner.set(key, mariadb);
  return mariadb;
}

const REFUSED = "NO_BACKSLASH_ESCAPES";
const ASK_VERSION = `SELECT CONCAT(IF(FIND_IN_SET('${REFUSED}', @@sql_mode), '${REFUSED} ', ''), VERSION()) AS rowpostversion`;

/**
 * Finds the field in rows, [rows, fields], { rows } or { records }. ORMs have nothing to convert in
 * its name.
 */
function findVersion(answer: unknown, depth = 0): string | undefined {
  const shape: Shape | undefined = shapeOf(answer);
  if (shape === undefined || depth > 3) return undefined;
  const version = shape["rowpostversion"];
  if (typeof version === "string") return version;
  for (const part of [shape[0], shape["rows"], shape["records"]]) {
    const found = findVersion(part, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

const TRANSACTION_IN_PROGRESS = 1568;

/** Looks through the wrappers that ORMs put around a server error. */
function hasErrorNumber(error: unknown, number: number, depth = 0): boolean {
  const shape = shapeOf(error);
  if (shape === undefined || depth > 4) return false;
  if (shape["errno"] === number || shape["originalCode"] === String(number)) return true;
  return ["cause", "meta", "driverAdapterError"].some((name) => hasErrorNumber(shape[name], number, depth + 1));
}
