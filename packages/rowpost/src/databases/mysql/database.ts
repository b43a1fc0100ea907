/** The {@link Database} of the MySQL family, over whichever driver. */
import type { Executor, Transaction } from "../../transactions/executor.ts";
import type { Database } from "../database.ts";
import { createDoorbell } from "../sql/doorbell.ts";
import type { TableLayout } from "../sql/layout.ts";
import { defaultLayout } from "../sql/layouts.ts";
import { createMessageAdmin } from "../sql/message-admin.ts";
import { createMessageWriter } from "../sql/message-writer.ts";
import { createRelayStore } from "../sql/relay-store.ts";
import type { DialectStatements } from "../sql/statements.ts";
import type { Driver } from "./driver.ts";
import { NOT_IN_TRANSACTION } from "./enqueue.ts";
import { endsTransaction, errorMentions, errorNumber, isDuplicate } from "./errors.ts";
import { openSession } from "./session.ts";
import { createStatements } from "./statements.ts";

/** The two functions of the transactions folder that know users' handles; only the entry files import that folder. */
export interface Transactions {
  toExecutor(handle: unknown, dialect: "mysql"): Executor;
  runTransaction<T>(on: unknown, dialect: "mysql", work: (tx: Transaction) => Promise<T>): Promise<T>;
}

export function createMysqlDatabase(driver: Driver, transactions: Transactions): Database {
  const statements = new Map<TableLayout, DialectStatements>();
  const connect: Database["connect"] = (options) => openSession(driver, options);

  function statementsOf(layout: TableLayout): DialectStatements {
    const known = statements.get(layout);
    if (known !== undefined) return known;
    const made = createStatements(layout);
    statements.set(layout, made);
    return made;
  }

  return {
    dialect: "mysql",
    label: driver.label,
    defaultLayout,
    connect,
    transaction: async (work, on) => await transactions.runTransaction(on ?? (await driver.pool()), "mysql", work),
    executor: (handle) => transactions.toExecutor(handle, "mysql"),
    doorbell: createDoorbell(),
    // MySQL has no notification: relays of other processes poll.
    listen: () => Promise.resolve(undefined),
    schema: ({ layout }) => statementsOf(layout).schema,
    messageWriter: ({ layout }) =>
      createMessageWriter({
        layout,
        statements: statementsOf(layout),
        isDuplicate,
        endsTransaction,
        isOutsideTransaction: (error) =>
          errorNumber(error) === NOT_IN_TRANSACTION.number && errorMentions(error, NOT_IN_TRANSACTION.text),
      }),
    relayStore: ({ layout }) => createRelayStore({ layout, statements: statementsOf(layout), connect }),
    messageAdmin: ({ layout }) => createMessageAdmin({ layout, statements: statementsOf(layout), connect }),
    close: () => driver.close(),
  };
}
