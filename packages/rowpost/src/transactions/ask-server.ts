/**
 * The one question that every ORM is asked before the INSERT: is the connection behind it still in
 * a transaction?
 */
import type { DialectName } from "../databases/database.ts";
import {
  ASK_STATUS,
  askBySetTransaction,
  isMariadb,
  knownMariadb,
  okStatus,
  requireBackslashEscapes,
  statusSaysOpen,
} from "./mysql-status.ts";

/** How an ORM is asked. */
export interface Asking {
  /** Sends a statement on the transaction's connection. */
  readonly run: (text: string) => Promise<unknown>;
  /** What all transactions of the ORM have in common; an object that lives as long as its pool. */
  readonly owner: unknown;
  /** The driver's OK packet inside the ORM's answer; absent where the ORM hides it. */
  okPacket?(answer: unknown): unknown;
}

/**
 * An ORM knows whether its own transaction has been ended by its own means. It does not notice when
 * the server ended it, or when a handle was kept, and its next statement would be committed alone,
 * or in another one's transaction. One round trip on MySQL; MariaDB none; PostgreSQL none here, see
 * `inTransaction`.
 */
export function askServer(dialect: DialectName, asking: Asking): boolean | undefined | Promise<boolean> {
  if (dialect === "postgres") return undefined;
  if (dialect === "sqlite") return askByBegin(asking.run);
  return knownMariadb(asking.owner) || askMysql(asking);
}

async function askMysql(asking: Asking): Promise<boolean> {
  if (await isMariadb(asking.owner, asking.run)) return true;
  if (asking.okPacket !== undefined) {
    const status = okStatus(asking.okPacket(await asking.run(ASK_STATUS)));
    if (status !== undefined) {
      requireBackslashEscapes(status);
      return statusSaysOpen(status);
    }
  }
  return await askBySetTransaction(asking.run);
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
