import type { Executor, Transaction } from "../../transactions/executor.ts";
import type { Database } from "../database.ts";
import { createSqlDatabase } from "../sql/sql-database.ts";
import { doctorLooks } from "./doctor.ts";
import type { Driver } from "./driver.ts";
import { isOutsideTransaction, unfitSession } from "./enqueue.ts";
import {
  endsTransaction,
  isDuplicate,
  isRowRefused,
  isTableMissing,
  lackedLetter,
  lackOf,
  translateError,
} from "./errors.ts";
import { inbox } from "./inbox.ts";
import { plans } from "./plan.ts";
import * as queueStatements from "./queue/statements.ts";
import { openSession } from "./session.ts";
import { createStatements } from "./statements.ts";
import { words } from "./words.ts";

/** Functions of the transactions folder, which only the entry files import. */
interface Transactions {
  toExecutor(handle: unknown, dialect: "mysql"): Executor;
  runTransaction<T>(
    on: unknown,
    dialect: "mysql",
    work: (tx: Transaction) => Promise<T>,
    options: { readonly prepare: boolean },
  ): Promise<T>;
}

export function createFamilyDatabase(driver: Driver, transactions: Transactions): Database {
  return createSqlDatabase({
    dialect: "mysql",
    label: driver.label,
    connect: (options) => openSession(driver, options),
    transaction: async (work, on) => {
      const prepare = on === undefined && driver.ownsPool;
      return await transactions.runTransaction(on ?? (await driver.pool()), "mysql", work, { prepare });
    },
    poolSize: () => driver.poolSize(),
    executor: (handle) => transactions.toExecutor(handle, "mysql"),
    createStatements,
    doctorLooks,
    plans,
    queueStatements,
    words,
    inbox,
    isTableMissing,
    hasEngineColumns: true,
    isDuplicate,
    isRowRefused,
    endsTransaction,
    lackedLetter,
    lackOf,
    translateError,
    isOutsideTransaction,
    unfitSession,
    close: () => driver.close(),
  });
}
