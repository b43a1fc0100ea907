/**
 * Is this MySQL connection in a transaction? MariaDB can be asked inside the INSERT (`@@in_transaction`); MySQL 8 and 9 have no expression
 * for it that an ordinary account may use, so it takes a round trip before the INSERT (0.05 to 0.1 ms on one machine).
 */
import { shapeOf } from "./shape.ts";

/** Flags of the OK packet, from the MySQL client/server protocol. */
const IN_TRANSACTION = 0x0001;
const AUTOCOMMIT = 0x0002;

/**
 * The server's own word: a transaction is open, or autocommit is off, in which case the next statement opens one and nothing is committed
 * without a COMMIT.
 */
export function statusSaysOpen(status: number): boolean {
  return (status & IN_TRANSACTION) !== 0 || (status & AUTOCOMMIT) === 0;
}

/** `serverStatus` of the OK packet that a statement without rows was answered with, where the driver or ORM hands it out. */
export function okStatus(result: unknown): number | undefined {
  const status = shapeOf(result)?.["serverStatus"];
  return typeof status === "number" ? status : undefined;
}

/** The cheapest statement there is; its OK packet carries the status. */
export const ASK_STATUS = "DO 0";

/**
 * For handles that hide the OK packet: a savepoint outlives its statement only inside a transaction. Two round trips, no trace left. Not
 * through prepared statements, which know no SAVEPOINT on MySQL.
 */
export async function askBySavepoint(run: (text: string) => Promise<unknown>): Promise<boolean> {
  await run("SAVEPOINT rowpost_is_open");
  try {
    await run("RELEASE SAVEPOINT rowpost_is_open");
    return true;
  } catch (error) {
    if (hasErrorNumber(error, NO_SUCH_SAVEPOINT)) return false;
    throw error;
  }
}

/**
 * For handles that prepare every statement: inside a transaction SET TRANSACTION is refused with error 1568, which changes nothing there.
 * Outside it is accepted, and says of the connection's next transaction what is the default anyway.
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

const NO_SUCH_SAVEPOINT = 1305;
const TRANSACTION_IN_PROGRESS = 1568;

/** Looks through the wrappers that ORMs put around an error of the server. */
function hasErrorNumber(error: unknown, number: number, depth = 0): boolean {
  const shape = shapeOf(error);
  if (shape === undefined || depth > 4) return false;
  if (shape["errno"] === number || shape["originalCode"] === String(number)) return true;
  return ["cause", "meta", "driverAdapterError"].some((name) => hasErrorNumber(shape[name], number, depth + 1));
}
