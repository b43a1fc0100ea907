/** `rowpost/sqlite`: SQLite, through node:sqlite or @photostructure/sqlite. */

import { checkOptions } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { runTransaction, toExecutor } from "../../transactions/index.ts";
import type { Database } from "../database.ts";
import { createSqlDatabase } from "../sql/sql-database.ts";
import { doctorLooks } from "./doctor.ts";
import { fileOf, isMemory, openHandle, type SqliteHandle } from "./driver.ts";
import { isRowRefused, isTableMissing, lackOf, translateError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { plans } from "./plan.ts";
import * as queueStatements from "./queue/statements.ts";
import { createSession } from "./session.ts";
import { createStatements } from "./statements.ts";
import { words } from "./words.ts";

export type { SqliteHandle, SqliteStatement } from "./driver.ts";

/** Options of `sqlite()`. Exactly one of `file` and `handle`. */
export interface SqliteOptions {
  /** Path of the database, created if missing. `:memory:` lives as long as the returned object. */
  readonly file?: string | undefined;
  /**
   * Your own open handle of node:sqlite, @photostructure/sqlite or better-sqlite3, used for
   * transactions. The relay opens its own handle on the same file; without a file it takes turns on
   * yours.
   */
  readonly handle?: SqliteHandle | undefined;
  /**
   * Called for a problem that does not stop the work, such as an old SQLite. Default:
   * process.emitWarning.
   */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/**
 * A {@link Database} on SQLite. Does not open the file yet. Throws `ConfigurationError` for invalid
 * options.
 *
 * Opens at most two handles beside the user's: one for `outbox.transaction` if there is none of the
 * user's (a commit is on the disk), and one for the relay (rule: sqlite-handle). On the user's
 * handle the relay would read uncommitted rows. Its commits do not wait for the disk, because a
 * message that a power cut undoes is only published again.
 */
export function sqlite(options: SqliteOptions): Database {
  const handles = createHandles(options);
  return createSqlDatabase({
    dialect: "sqlite",
    label: handles.label,
    connect: async (session) => createSession(await handles.forRelay(), session),
    transaction: async (work, on) => await runTransaction(on ?? (await handles.forTransactions()), "sqlite", work),
    // A handle is one connection and takes turns by itself.
    poolSize: () => Promise.resolve(undefined),
    executor: (handle) => toExecutor(handle, "sqlite"),
    createStatements,
    doctorLooks,
    plans,
    queueStatements,
    words,
    inbox,
    isTableMissing,
    // Our INSERT skips duplicates; a violation of another unique key of a user's own table is the
    // user's error.
    isDuplicate: () => false,
    isRowRefused,
    lackOf,
    translateError,
    sharedSession: true,
    close: () => handles.close(),
  });
}

interface Handles {
  readonly label: string;
  forTransactions(): Promise<SqliteHandle>;
  forRelay(): Promise<SqliteHandle>;
  close(): Promise<void>;
}

function createHandles(options: SqliteOptions): Handles {
  checkOptions("sqlite()", options, { file: "string", handle: "object", onWarning: "function" });
  const { file, handle } = options;
  if ((file === undefined) === (handle === undefined)) {
    throw new ConfigurationError('sqlite() takes exactly one of file and handle: sqlite({ file: "orders.db" })');
  }
  if (handle !== undefined && (typeof handle.prepare !== "function" || typeof handle.exec !== "function")) {
    throw new ConfigurationError(
      "sqlite({ handle }) takes an open handle of node:sqlite, @photostructure/sqlite or better-sqlite3",
    );
  }
  const onWarning = options.onWarning ?? ((message) => process.emitWarning(message, { code: "ROWPOST_SQLITE" }));
  const path = file ?? (handle === undefined ? "" : fileOf(handle));
  const opened = new Map<string, Promise<SqliteHandle>>();

  /** One handle per use; the next call retries a failed open. */
  function open(use: "transactions" | "relay", synchronous: "FULL" | "NORMAL"): Promise<SqliteHandle> {
    const known = opened.get(use);
    if (known !== undefined) return known;
    const opening = openHandle({ file: path, synchronous, onWarning });
    opened.set(use, opening);
    opening.catch(() => opened.delete(use));
    return opening;
  }

  const forTransactions = (): Promise<SqliteHandle> =>
    handle === undefined ? open("transactions", "FULL") : Promise.resolve(handle);
  return {
    label: `sqlite:${path === "" ? ":memory:" : path}`,
    forTransactions,
    forRelay: () => (isMemory(path) ? forTransactions() : open("relay", "NORMAL")),
    async close() {
      const all = [...opened.values()];
      opened.clear();
      for (const each of all) (await each.catch(() => undefined))?.close();
    },
  };
}
