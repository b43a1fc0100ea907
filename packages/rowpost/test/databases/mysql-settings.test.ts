/**
 * Settings that a server, its init_connect or a pool gives to every session, and that would change
 * what the relay's statements do. Here they are the pool's: the relay borrows connections of it.
 */
import { createPool } from "mariadb";
import { afterEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

const MESSAGES = 5;

describeWithService(["mariadb", "mysql9"], "a pool with settings of its own", ({ name }) => {
  let table: RelayTestDatabase | undefined;
  afterEach(() => table?.drop());

  it.each([
    ["sql_safe_updates", "SET SESSION sql_safe_updates = 1"],
    ["sql_select_limit", "SET SESSION sql_select_limit = 1"],
    ["read only transactions", "SET SESSION TRANSACTION READ ONLY"],
    ["autocommit off", "SET SESSION autocommit = 0"],
  ])("%s changes nothing for the relay", async (_what, initSql) => {
    table = await createRelayDatabase(name);
    await table.insert(Array.from({ length: MESSAGES }, (_, index) => ({ key: String(index), orderingKey: "k" })));
    const { hostname, port, username, pathname } = new URL(table.url);
    const options = { host: hostname, port: Number(port), user: username, database: pathname.slice(1) };
    const pool = createPool({ ...options, initSql, connectionLimit: 6, allowPublicKeyRetrieval: true });
    const relay = createRelay({ database: mariadb({ pool }), broker: memory() });
    try {
      expect(await relay.tick()).toMatchObject({ claimed: MESSAGES, sent: MESSAGES });
    } finally {
      await relay.stop();
      await pool.end();
    }
    expect(await table.states()).toEqual({ 2: MESSAGES });
  });
});
