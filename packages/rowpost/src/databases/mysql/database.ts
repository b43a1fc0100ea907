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
import { errorNumber, isDuplicate } from "./errors.ts";
import { openSession } from "./session.ts";
import { createStatements } from "./statements.ts";

/** What the entry files compose: a driver, and the two functions of the transactions folder that know users' handles. */
export interface MysqlDatabaseParts {
  readonly driver: Driver;
  readonly executor: (handle: unknown) => Executor;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>, on?: unknown) => Promise<T>;
}

export function createMysqlDatabase(parts: MysqlDatabaseParts): Database {
  const { driver } = parts;
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
    transaction: parts.transaction,
    executor: parts.executor,
    doorbell: createDoorbell(),
    // MySQL has no notification: relays of other processes poll.
    listen: () => Promise.resolve(undefined),
    schema: ({ layout }) => statementsOf(layout).schema,
    messageWriter: ({ layout }) =>
      createMessageWriter({
        layout,
        statements: statementsOf(layout),
        isDuplicate,
        isOutsideTransaction: (error) => errorNumber(error) === NOT_IN_TRANSACTION,
      }),
    relayStore: ({ layout }) => createRelayStore({ layout, statements: statementsOf(layout), connect }),
    messageAdmin: ({ layout }) => createMessageAdmin({ layout, statements: statementsOf(layout), connect }),
    close: () => driver.close(),
  };
}
