/** A relay on the application's own pool of the mariadb package, which its sessions are of. */
import { createPool, type PoolConfig } from "mariadb";
import { afterEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

/** Keys of the messages that it sends. */
const KEYS = ["1", "2", "3", "4", "5"];

describeWithService(["mariadb", "mysql9"], "a relay on the application's pool of mariadb", ({ name }) => {
  let table: RelayTestDatabase | undefined;
  let close: () => Promise<void>;
  afterEach(() => close());

  async function poolOf(options: PoolConfig) {
    table = await createRelayDatabase(name);
    await table.insert(KEYS.map((key) => ({ key })));
    const { hostname, port, username, pathname } = new URL(table.url);
    const address = { host: hostname, port: Number(port), user: username, database: pathname.slice(1) };
    const pool = createPool({ ...address, allowPublicKeyRetrieval: true, acquireTimeout: 500, ...options });
    const relay = createRelay({ database: mariadb({ pool }), broker: memory(), logger: "silent" });
    close = async () => {
      await relay.stop();
      await pool.end();
      await table?.drop();
    };
    return { pool, relay };
  }

  it.each([1, 2, 3, 4])(
    "with a connectionLimit of %i is refused, and the application has a connection",
    async (limit) => {
      const { pool, relay } = await poolOf({ connectionLimit: limit });
      await expect(relay.start()).rejects.toMatchObject({
        code: "CONFIGURATION",
        message: expect.stringContaining("mariadb({ url })"),
      });
      expect(await pool.query("SELECT 'x' AS one")).toEqual([{ one: "x" }]);
    },
  );

  it("leaves the application a connection where there is room", async () => {
    const { pool, relay } = await poolOf({ connectionLimit: 6 });
    await relay.start();
    await expect.poll(() => table?.states()).toEqual({ 2: KEYS.length });
    expect(await pool.query("SELECT 'x' AS one")).toEqual([{ one: "x" }]);
  });

  it("works whatever the pool says about the form of answers", async () => {
    const { relay } = await poolOf({ connectionLimit: 6, metaAsArray: true, namedPlaceholders: true });
    await relay.start();
    await expect.poll(() => table?.states()).toEqual({ 2: KEYS.length });
  });
});
