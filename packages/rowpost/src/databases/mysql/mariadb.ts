/**
 * `rowpost/mariadb`: MariaDB, and MySQL 8 and 9, through the mariadb package. Uses 20 to 50 % less
 * client CPU than mysql2.
 */
import { runTransaction, toExecutor } from "../../transactions/index.ts";
import type { Database } from "../database.ts";
import { type ConnectionOptions, sourceOf } from "./connection-options.ts";
import { createFamilyDatabase } from "./family.ts";
import { createMariadbDriver } from "./mariadb-driver.ts";

export type { ConnectionOptions } from "./connection-options.ts";

/**
 * The user's own pool of the mariadb package, a URL, or connection options. A relay on a pool keeps
 * four of its connections, five when it appends to the queue; a pool without room for one more is
 * refused. MySQL with caching_sha2_password and no TLS needs `allowPublicKeyRetrieval: true`.
 */
export type MariadbOptions =
  | { readonly pool: unknown }
  | { readonly url: string }
  | (ConnectionOptions & { readonly allowPublicKeyRetrieval?: boolean });

/**
 * A {@link Database} on the mariadb package (`npm install mariadb`). Does not connect yet. Throws
 * `ConfigurationError` for an invalid pool or URL.
 */
export function mariadb(options: MariadbOptions): Database {
  const driver = createMariadbDriver(sourceOf("mariadb()", options, { allowPublicKeyRetrieval: "boolean" }));
  return createFamilyDatabase(driver, { toExecutor, runTransaction });
}
