/** A primary and its replica, and what an operator does with them. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { freePort } from "../own-servers/free-port.ts";
import { makeMariadbData, startOwnMariadb } from "../own-servers/own-mariadb.ts";
import { makePostgresData, makeShop, startOwnPostgres } from "../own-servers/own-postgres.ts";
import type { OwnServer } from "../own-servers/own-server.ts";
import { until } from "../until.ts";

export type PairKind = "mariadb" | "postgres";

/** Replication runs from the start, asynchronous. */
export interface Pair {
  readonly primary: OwnServer;
  /** Listens on 127.0.0.2, on the port of the primary. */
  readonly replica: OwnServer;
  /** From here on a commit is seen by nobody before the replica has it. */
  waitForReplica(): Promise<void>;
  /** Resolves when the replica shows all that the primary has committed. */
  caughtUp(): Promise<void>;
  /** The replica gets nothing more. */
  cutReplication(): Promise<void>;
  /** The primary refuses what applications write; connections stay. */
  refuseWrites(): Promise<void>;
  /** Ends the sessions that applications have on the primary. */
  endSessions(): Promise<void>;
  /** Makes the replica a primary, with all that it has received. */
  promote(): Promise<void>;
  drop(): Promise<void>;
}

/** Starts pairs in the tests of a block, and drops what is left after each. */
export function usePairs(kind: PairKind): { start(): Promise<Pair>; open(address: string): Database } {
  const { makeData, start, open } = KINDS[kind];
  const open_: Database[] = [];
  const pairs: Pair[] = [];
  let data = "";

  beforeAll(async () => {
    data = await makeData();
  });
  afterAll(() => rm(data, { recursive: true, force: true }));
  afterEach(async () => {
    await Promise.all(open_.splice(0).map((database) => database.close()));
    await Promise.all(pairs.splice(0).map((pair) => pair.drop()));
  });

  return {
    async start() {
      const pair = await start(data);
      pairs.push(pair);
      return pair;
    },
    /** `host:port` of a server, or of what stands before it. */
    open(address) {
      const database = open(address);
      open_.push(database);
      return database;
    },
  };
}

async function startMariadb(from: string): Promise<Pair> {
  const port = await freePort();
  const common = ["--log-bin", "--binlog-format=ROW", "--log-slave-updates", "--rpl-semi-sync-master-timeout=600000"];
  const [primary, replica] = await Promise.all([
    startOwnMariadb({ from, port, settings: [...common, "--server-id=1"] }),
    startOwnMariadb({
      ...{ from, port, host: "127.0.0.2" },
      settings: [...common, "--server-id=2", "--read-only", "--rpl-semi-sync-slave-enabled"],
    }),
  ]);
  await replica.sql(
    `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${port}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos`,
  );
  await replica.sql("START SLAVE");

  async function applied(gtid: unknown): Promise<void> {
    await replica.sql(`SELECT MASTER_GTID_WAIT('${String(gtid)}')`);
  }

  return {
    ...{ primary, replica },
    async waitForReplica() {
      await primary.sql("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC");
      await primary.sql("SET GLOBAL rpl_semi_sync_master_enabled = ON");
      const clients = async () => await primary.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'");
      await until(async () => (await clients())[0]?.["Value"] === "1");
    },
    async caughtUp() {
      await applied((await primary.sql("SELECT @@gtid_binlog_pos AS gtid"))[0]?.["gtid"]);
    },
    async cutReplication() {
      await replica.sql("STOP SLAVE");
    },
    async refuseWrites() {
      await primary.sql("SET GLOBAL read_only = ON");
    },
    async endSessions() {
      await primary.sql("KILL USER app");
    },
    async promote() {
      await replica.sql("STOP SLAVE IO_THREAD");
      const status = await replica.sql("SHOW SLAVE STATUS");
      await applied(status[0]?.["Gtid_IO_Pos"]);
      await replica.sql("STOP SLAVE");
      await replica.sql("RESET SLAVE ALL");
      await replica.sql("SET GLOBAL read_only = OFF");
    },
    drop: () => dropBoth(primary, replica),
  };
}

async function startPostgres(from: string): Promise<Pair> {
  const port = await freePort();
  const settings = { wal_keep_size: "64MB" };
  const primary = await startOwnPostgres({ from, port, settings });
  // Of the same data folder, which the primary has been started on for the first time: all that it
  // has written since comes over the connection.
  const replica = await startOwnPostgres({
    ...{ from, port, host: "127.0.0.2", settings },
    async prepare(data) {
      const where = `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres'\n`;
      await writeFile(join(data, "postgresql.auto.conf"), where);
      await writeFile(join(data, "standby.signal"), "");
    },
  });
  await makeShop(primary);

  return {
    ...{ primary, replica },
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
    async endSessions() {
      await primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    },
    async promote() {
      await replica.sql("SELECT pg_promote()");
    },
    drop: () => dropBoth(primary, replica),
  };
}

async function dropBoth(...servers: readonly OwnServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.drop()));
}

const KINDS = {
  mariadb: {
    makeData: makeMariadbData,
    start: startMariadb,
    open: (address: string): Database => mysql({ url: `mysql://app@${address}/shop` }),
  },
  postgres: {
    makeData: makePostgresData,
    start: startPostgres,
    open: (address: string): Database => postgres({ url: `postgres://app@${address}/shop` }),
  },
} as const;
