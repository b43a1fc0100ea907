/** `rowpost/postgres`: PostgreSQL 12 and newer, through pg. */
import { runTransaction, toExecutor } from "../../transactions/index.ts";
import type { Database } from "../database.ts";
import { createSqlDatabase } from "../sql/sql-database.ts";
import { doctorLooks } from "./doctor.ts";
import { createDriver, type PostgresOptions } from "./driver.ts";
import { channelOf } from "./enqueue.ts";
import { errorCode, isRowRefused, isTableMissing, lackedLetter, lackOf, translateError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { listenOn } from "./listen.ts";
import { plans } from "./plan.ts";
import { newsIn, QUEUE_CHANNEL } from "./queue/append.ts";
import * as queueStatements from "./queue/statements.ts";
import { openSession } from "./session.ts";
import { createStatements } from "./statements.ts";
import { words } from "./words.ts";

export type { PgConfig, PgPool, PostgresOptions } from "./driver.ts";

/** Only from another unique key of a user's own table: ON CONFLICT handles ours. */
const UNIQUE_VIOLATION = "23505";

/**
 * A {@link Database} on PostgreSQL (`npm install pg`). Does not connect yet. `outbox.transaction`
 * runs on the given pool; the relay opens its own connections with the same options. They need the
 * server itself, or a pooler in session mode, because settings, prepared statements and LISTEN
 * belong to the session. Behind a pooler in transaction mode they are refused, and only the outbox
 * works. Throws `ConfigurationError` for invalid options.
 */
export function postgres(options: PostgresOptions): Database {
  const driver = createDriver(options);
  const { prepare } = options;
  return createSqlDatabase({
    dialect: "postgres",
    label: driver.label,
    connect: (session) => openSession(driver, session),
    transaction: async (work, on) => await runTransaction(on ?? (await driver.pool()), "postgres", work, { prepare }),
    poolSize: () => driver.poolSize(),
    executor: (handle) => toExecutor(handle, "postgres", { prepare }),
    createStatements,
    doctorLooks,
    plans,
    isDuplicate: (error) => errorCode(error) === UNIQUE_VIOLATION,
    isRowRefused,
    lackedLetter,
    lackOf,
    translateError,
    queueStatements,
    words,
    inbox,
    isTableMissing,
    listen: (of, ring, signal) =>
      of === "queue"
        ? listenOn({ driver, channel: QUEUE_CHANNEL, heard: (payload) => ring(newsIn(payload)), signal })
        : listenOn({ driver, channel: channelOf(of), heard: () => ring(), signal }),
    close: () => driver.close(),
  });
}
