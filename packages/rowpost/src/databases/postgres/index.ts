/** `rowpost/postgres`: PostgreSQL 12 and newer, through pg. */
import { runTransaction, toExecutor } from "../../transactions/index.ts";
import type { Database } from "../database.ts";
import { createDoorbell } from "../sql/doorbell.ts";
import type { TableLayout } from "../sql/layout.ts";
import { defaultLayout as anyDefaultLayout } from "../sql/layouts.ts";
import { createMessageAdmin } from "../sql/message-admin.ts";
import { createMessageWriter } from "../sql/message-writer.ts";
import { createRelayStore } from "../sql/relay-store.ts";
import type { DialectStatements } from "../sql/statements.ts";
import { createDriver, type PostgresOptions } from "./driver.ts";
import { channelOf } from "./enqueue.ts";
import { errorCode } from "./errors.ts";
import { listenOn } from "./listen.ts";
import { openSession } from "./session.ts";
import { createStatements } from "./statements.ts";

export type { PgConfig, PgPool, PostgresOptions } from "./driver.ts";

/** The default layout as this dialect makes it: without the column that keeps MySQL's rows from growing. */
const defaultLayout: TableLayout = {
  ...anyDefaultLayout,
  columns: { ...anyDefaultLayout.columns, settlePad: undefined },
};

/** A layout as this dialect can have it. */
function withoutPad(layout: TableLayout): TableLayout {
  if (layout.columns.settlePad === undefined) return layout;
  return { ...layout, columns: { ...layout.columns, settlePad: undefined } };
}

/**
 * A {@link Database} on PostgreSQL (`npm install pg`). Connects to nothing yet. `outbox.transaction` runs on the given pool; the relay's sessions
 * are connections of its own with the same options, and never taken from the pool. They need the server itself, or a pooler in session mode:
 * settings, prepared statements and LISTEN live in the session. Throws `ConfigurationError` for options that fit nothing.
 */
export function postgres(options: PostgresOptions): Database {
  const driver = createDriver(options);
  const doorbell = createDoorbell();
  const statements = new Map<TableLayout, DialectStatements>();
  const connect: Database["connect"] = (sessionOptions) => openSession(driver, sessionOptions);

  function statementsOf(layout: TableLayout): DialectStatements {
    const known = statements.get(layout);
    if (known !== undefined) return known;
    const made = createStatements(layout);
    statements.set(layout, made);
    return made;
  }

  return {
    dialect: "postgres",
    label: driver.label,
    defaultLayout,
    connect,
    transaction: async (work, on) => await runTransaction(on ?? (await driver.pool()), "postgres", work),
    executor: (handle) => toExecutor(handle, "postgres"),
    doorbell,
    listen: (layout) => listenOn({ driver, channel: channelOf(layout), doorbell }),
    schema: ({ layout }) => statementsOf(layout).schema,
    messageWriter: ({ layout }) =>
      createMessageWriter({
        layout: withoutPad(layout),
        statements: statementsOf(layout),
        isDuplicate: (error) => errorCode(error) === UNIQUE_VIOLATION,
      }),
    relayStore: ({ layout }) =>
      createRelayStore({ layout: withoutPad(layout), statements: statementsOf(layout), connect }),
    messageAdmin: ({ layout }) =>
      createMessageAdmin({ layout: withoutPad(layout), statements: statementsOf(layout), connect }),
    close: () => driver.close(),
  };
}

/** Only another unique key of a user's own table: ours is left to ON CONFLICT. */
const UNIQUE_VIOLATION = "23505";
