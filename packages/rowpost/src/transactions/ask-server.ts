/** Asks through an ORM, before the INSERT, whether its connection is still in a transaction. */
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

export interface Asking {
  readonly run: (text: string) => Promise<unknown>;
  /** An object shared by all transactions of the ORM that lives as long as its pool. */
  readonly owner: unknown;
  /** The driver's OK packet inside the ORM's answer; absent if the ORM hides it. */
  okPacket?(answer: unknown): unknown;
}

/**
 * An ORM does not notice when the server ended its transaction or when a handle was kept; its next
 * statement would commit by itself or in another transaction. One round trip on MySQL, none on
 * MariaDB; for PostgreSQL see `inTransaction`.
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

/** SQLite refuses a BEGIN inside a transaction without side effects. */
async function askByBegin(run: (text: string) => Promise<unknown>): Promise<boolean> {
  try {
    await run("BEGIN");
  } catch {
    return true;
  }
  await run("ROLLBACK");
  return false;
}
