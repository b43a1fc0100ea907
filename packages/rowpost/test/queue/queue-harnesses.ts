/** The databases that the queue contract runs on. */
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import type { QueueStoreHarness } from "../contracts/queue-contract/harness.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";
import { sqlitePlace } from "./places.ts";

/** An empty database on a server. `driver`: of MariaDB, instead of mysql2. */
export async function serverHarness(service: DatabaseServiceName, driver?: "mariadb"): Promise<QueueStoreHarness> {
  const made = await createTestDatabase(service);
  const { url } = made;
  return {
    name: driver === undefined ? service : `${service} (its own driver)`,
    features: { rowLocks: true },
    createDatabase(): Database {
      if (service === "postgres") return postgres({ url });
      return driver === undefined ? mysql({ url }) : mariadb({ url });
    },
    close: () => made.drop(),
  };
}

/** A new SQLite file, or a database in memory. */
export async function sqliteHarness(where: "file" | "memory"): Promise<QueueStoreHarness> {
  const features = { rowLocks: false };
  if (where === "memory") {
    const database = sqlite({ file: ":memory:" });
    return { name: "sqlite (memory)", features, createDatabase: () => database };
  }
  const place = await sqlitePlace();
  return { name: "sqlite (file)", features, createDatabase: () => place.open(), close: () => place.drop() };
}
