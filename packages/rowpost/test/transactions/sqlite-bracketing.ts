/** The handles that the tests of SQLite have in common. */
import type { SqliteHandle } from "../../src/databases/sqlite/driver.ts";
import type { Handles } from "./handles.ts";

/** Brackets by hand, on one handle. */
export function sqliteHandles(handle: SqliteHandle): Handles {
  return {
    root: undefined,
    async transaction(work) {
      handle.exec("BEGIN IMMEDIATE");
      try {
        await work(handle, async (id) => handle.prepare("INSERT INTO orders (id) VALUES (?)").run(id));
      } catch (error) {
        handle.exec("ROLLBACK");
        throw error;
      }
      handle.exec("COMMIT");
    },
    withoutTransaction: (work) => work(handle),
    close: async () => handle.close(),
  };
}
