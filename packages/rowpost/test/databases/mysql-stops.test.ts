/** A statement that takes too long is stopped by the server, where a tool asks for that. */
import { expect, it } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { DatabaseUnavailableError } from "../../src/runtime/errors.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

const ENDLESS =
  "SELECT COUNT(*) AS n FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b, information_schema.COLLATIONS c, information_schema.COLLATIONS d";

describeWithService(["mariadb", "mysql8", "mysql9"], "a statement limit on the server", ({ name }) => {
  it("ends the statement, and the session goes on", async () => {
    const place = await createTestDatabase(name);
    const database = mysql({ url: place.url });
    const session = await database.connect({ purpose: "tool", statementTimeoutMs: 300, stopsOnServer: true });
    try {
      const endless = session.run({ name: "endless", text: ENDLESS, params: [] });
      await expect(endless).rejects.toThrow(DatabaseUnavailableError);
      await expect(endless).rejects.toThrow("stopped by the server");
      // The client has not cut it: it was the server's own answer.
      expect(session.dead).toBe(false);
      const { rows } = await session.run({ name: "one", text: "SELECT 1 AS one", params: [] });
      expect(rows).toHaveLength(1);
    } finally {
      await session.close();
      await database.close();
      await place.drop();
    }
  });
});
