/** What a server of a test's own may not do to the others of the machine. */
import { access, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "./free-port.ts";
import { makeMariadbData, mariadbPrograms, startOwnMariadb } from "./own-mariadb.ts";
import { describeWithPrograms } from "./own-server.ts";

describeWithPrograms(mariadbPrograms, "a MariaDB of a test's own", () => {
  test("leaves the temporary tables of other servers alone, when its data is made and when it starts", async () => {
    // As the system's server names those that it has on disk.
    const table = join(tmpdir(), `#sql-temptable-test-${process.pid}.MAI`);
    await writeFile(table, "");
    try {
      const from = await makeMariadbData();
      await access(table);
      const server = await startOwnMariadb({ port: await freePort(), from });
      try {
        await access(table);
        expect(await server.sql("SELECT @@tmpdir AS folder")).toEqual([{ folder: join(server.folder, "tmp") }]);
      } finally {
        await server.drop();
        await rm(from, { recursive: true });
      }
    } finally {
      await rm(table, { force: true });
    }
  });
});
