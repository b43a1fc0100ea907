/** `rowpost/mysql`: MySQL 8 and 9, and MariaDB, through mysql2. */
import { runTransaction, toExecutor } from "../../transactions/index.ts";
import type { Database } from "../database.ts";
import { type ConnectionOptions, sourceOf } from "./connection-options.ts";
import { createFamilyDatabase } from "./family.ts";
import { createMysql2Driver } from "./mysql2-driver.ts";

export type { ConnectionOptions } from "./connection-options.ts";

/**
 * The user's own mysql2 pool, a URL, or connection options. A pool serves `outbox.transaction`
 * only; the relay opens its own connections with the pool's address and credentials.
 */
export type MysqlOptions = { readonly pool: unknown } | { readonly url: string } | ConnectionOptions;

/**
 * A {@link Database} on mysql2 (`npm install mysql2`). Does not connect yet. Throws
 * `ConfigurationError` for an invalid pool or URL.
 */
export function mysql(options: MysqlOptions): Database {
  const driver = createMysql2Driver(sourceOf("mysql()", options));
  return createFamilyDatabase(driver, { toExecutor, runTransaction });
}
