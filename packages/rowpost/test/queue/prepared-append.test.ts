/** Handles of users keep a prepared statement for each text: appends have few of them. */
import { createConnection as mariadbConnection } from "mariadb";
import { createConnection } from "mysql2/promise";
import { expect, it } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { createQueue } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

/** A connection of the user's; rows come as mysql2's promise form gives them, or mariadb's. */
interface Handle {
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
}

const DRIVERS = {
  mysql2: {
    open: (url: string) => mysql({ url: url.replace(/^mariadb:/, "mysql:") }),
    connect: (url: string): Promise<Handle> => createConnection(url.replace(/^mariadb:/, "mysql:")),
  },
  mariadb: {
    open: (url: string) => mariadb({ url: url.replace(/^mysql:/, "mariadb:") }),
    connect: (url: string): Promise<Handle> => mariadbConnection(url.replace(/^mysql:/, "mariadb:")),
  },
};

async function prepared(handle: Handle): Promise<number> {
  const rows = (await handle.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'")) as { Value: string }[][];
  return Number(rows.flat()[0]?.Value);
}

describeWithService(["mariadb", "mysql9"], "the statements of appends", ({ name }) => {
  it.each(["mysql2", "mariadb"] as const)("are prepared once each by %s, whatever the ids", async (driver) => {
    const made = await createTestDatabase(name);
    const { open, connect } = DRIVERS[driver];
    const database = open(made.url);
    const queue = createQueue({ database });
    const handle = await connect(made.url);
    try {
      await queue.migrate();
      await queue.createTopic({ topic: "orders", partitions: 64 });
      const ids: string[] = [];
      for (let round = 0; round < 130; round += 1) {
        await handle.query("BEGIN");
        ids.push(...(await queue.append(handle, [{ topic: "orders", key: String(round), body: round }])));
        await handle.query("COMMIT");
      }
      expect(new Set(ids.map((id) => BigInt(id) % 64n)).size).toBe(64);
      // What is asked of the connection, the counter, what it is now, and the row.
      expect(await prepared(handle)).toBeLessThanOrEqual(4);
      for (const [round, id] of ids.entries()) {
        expect(await queue.message("orders", id)).toMatchObject({ id, key: String(round), body: round });
      }
    } finally {
      await handle.end();
      await queue.close();
      await database.close();
      await made.drop();
    }
  });
});
