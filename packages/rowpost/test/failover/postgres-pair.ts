/** Pairs of PostgreSQL, with streaming replication. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../own-servers/free-port.ts";
import { makeShop, startOwnPostgres } from "../own-servers/own-postgres.ts";
import { until } from "../until.ts";
import type { Pair } from "./pair.ts";

/** Starts one on copies of the data. */
export async function startPostgresPair(from: string): Promise<Pair> {
  const port = await freePort();
  const settings = { wal_keep_size: "64MB" };
  const primary = await startOwnPostgres({ from, port, settings });
  // Of the same data folder, which the primary has been started on for the first time: all that it
  // has written since comes over the connection.
  const replica = await startOwnPostgres({
    from,
    port,
    host: "127.0.0.2",
    settings,
    async prepare(data) {
      const where = `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres'\n`;
      await writeFile(join(data, "postgresql.auto.conf"), where);
      await writeFile(join(data, "standby.signal"), "");
    },
  });
  await makeShop(primary);

  return {
    primary,
    replica,
    async waitForReplica() {
      await primary.sql("ALTER SYSTEM SET synchronous_commit = remote_apply");
      await primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await primary.sql("SELECT pg_reload_conf()");
      const state = async () => await primary.sql("SELECT sync_state FROM pg_stat_replication");
      await until(async () => (await state())[0]?.["sync_state"] === "sync");
    },
    async caughtUp() {
      const written = (await primary.sql("SELECT pg_current_wal_lsn()::text AS lsn"))[0]?.["lsn"];
      const has = `SELECT pg_last_wal_replay_lsn() >= '${String(written)}'::pg_lsn AS has`;
      await until(async () => (await replica.sql(has))[0]?.["has"] === true);
    },
    async cutReplication() {
      await replica.sql("ALTER SYSTEM SET primary_conninfo = ''");
      await replica.sql("SELECT pg_reload_conf()");
      await until(async () => (await primary.sql("SELECT 1 FROM pg_stat_replication")).length === 0);
    },
    async refuseWrites() {
      await primary.sql("ALTER SYSTEM SET default_transaction_read_only = on");
      await primary.sql("SELECT pg_reload_conf()");
      const isOn = async () => await primary.sql("SHOW default_transaction_read_only");
      await until(async () => (await isOn())[0]?.["default_transaction_read_only"] === "on");
    },
    async promote() {
      await replica.sql("SELECT pg_promote()");
    },
  };
}
