/**
 * The one question that every ORM is asked before the INSERT: is the connection behind it still in
 * a transaction?
 */
import type { DialectName } from "../databases/database.ts";
import {
  ASK_STATUS,
  askBySavepoint,
  askBySetTransaction,
  isMariadb,
  okStatus,
  requireBackslashEscapes,
  statusSaysOpen,
} from "./mysql-status.ts";
import { askByLock } from "./pg-status.ts";

/** How an ORM is asked. */
export interface Asking {
  /** Sends a statement on the transaction's connection. */
  readonly run: (text: string) => Promise<unknown>;
  /** What all transactions of the ORM have in common; an object that lives as long as its pool. */
  readonly owner: unknown;
  /** The driver's OK packet inside the ORM's answer; absent where the ORM hides it. */
  okPacket?(answer: unknown): unknown;
  /** The ORM prepares every statement. Default false. */
  readonly prepares?: boolean;
}

/**
 * An ORM knows whether its own transaction has been ended by its own means. It does not notice when
 * the server ended it, or when a handle was kept, and its next statement would be committed alone,
 * or in another one's transaction. One round trip; MySQL through Kysely two; MariaDB none.
 */
export async function askServer(dialect: DialectName, asking: Asking): Promise<boolean> {
  if (dialect === "postgres") return await askByLock(asking.run);
  if (dialect === "sqlite") return await askByBegin(asking.run);
  if (await isMariadb(asking.owner, asking.run)) return true;
  if (asking.prepares === true) return await askBySetTransaction(asking.run);
  if (asking.okPacket !== undefined) {
    const status = okStatus(asking.okPacket(await asking.run(ASK_STATUS)));
    if (status !== undefined) {
      requireBackslashEscapes(status);
      return statusSaysOpen(status);
    }
  }
  return await askBySavepoint(asking.run);
}

/** SQLite refuses a BEGIN inside a transaction, and nothing else happens. */
async function askByBegin(run: (text: string) => Promise<unknown>): Promise<boolean> {
  try {
    await run("BEGIN");
  } catch {
    return true;
  }
  await run("ROLLBACK");
  return false;
}
