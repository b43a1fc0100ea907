/** Pairs of MariaDB and of MySQL, whose replicas go by global transaction ids. */
import { freePort } from "../own-servers/free-port.ts";
import type { OwnMysqlOptions } from "../own-servers/mysql-family.ts";
import { startOwnMariadb } from "../own-servers/own-mariadb.ts";
import { startOwnMysql } from "../own-servers/own-mysql.ts";
import type { OwnServer } from "../own-servers/own-server.ts";
import { until } from "../until.ts";
import type { Pair } from "./pair.ts";

/** What a kind of server calls by names of its own. */
interface Words {
  readonly start: (options: OwnMysqlOptions) => Promise<OwnServer>;
  readonly settings: readonly string[];
  readonly replicaSettings: readonly string[];
  /** What the replica is told about its primary. */
  readonly follow: (port: number) => string;
  /** Variables of semi-synchronous replication on the primary begin so. */
  readonly semiSync: string;
  /** All that has been committed here. */
  readonly committed: string;
  /** Answers when that much has been applied here. */
  readonly wait: string;
  /** Column of the replica's status with all that it has received. */
  readonly received: string;
  /** Has everybody but administrators be refused. */
  readonly readOnly: string;
}

const MARIADB: Words = {
  start: startOwnMariadb,
  settings: ["--log-bin", "--binlog-format=ROW", "--log-slave-updates", "--rpl-semi-sync-master-timeout=600000"],
  replicaSettings: ["--rpl-semi-sync-slave-enabled"],
  follow: (port) =>
    `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${port}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos`,
  semiSync: "rpl_semi_sync_master",
  committed: "SELECT @@gtid_binlog_pos AS gtid",
  wait: "MASTER_GTID_WAIT",
  received: "Gtid_IO_Pos",
  readOnly: "read_only",
};

const MYSQL: Words = {
  start: startOwnMysql,
  settings: [
    ...["--log-bin", "--sync-binlog=0", "--gtid-mode=ON", "--enforce-gtid-consistency"],
    "--plugin-load=rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so",
    "--rpl-semi-sync-source-timeout=600000",
  ],
  replicaSettings: ["--rpl-semi-sync-replica-enabled=ON"],
  follow: (port) =>
    `CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = ${port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1`,
  semiSync: "rpl_semi_sync_source",
  committed: "SELECT @@GLOBAL.gtid_executed AS gtid",
  wait: "WAIT_FOR_EXECUTED_GTID_SET",
  received: "Retrieved_Gtid_Set",
  // Turns read_only on as well.
  readOnly: "super_read_only",
};

export const startMariadbPair = (from: string): Promise<Pair> => startPair(from, MARIADB);
export const startMysqlPair = (from: string): Promise<Pair> => startPair(from, MYSQL);

async function startPair(from: string, words: Words): Promise<Pair> {
  const port = await freePort();
  const [primary, replica] = await Promise.all([
    words.start({ from, port, settings: [...words.settings, "--server-id=1"] }),
    words.start({
      from,
      port,
      host: "127.0.0.2",
      settings: [...words.settings, ...words.replicaSettings, "--server-id=2", "--read-only"],
    }),
  ]);
  await replica.sql(words.follow(port));
  await replica.sql("START REPLICA");

  async function applied(gtid: unknown): Promise<void> {
    await replica.sql(`SELECT ${words.wait}('${String(gtid)}')`);
  }

  return {
    primary,
    replica,
    async waitForReplica() {
      await primary.sql(`SET GLOBAL ${words.semiSync}_wait_point = AFTER_SYNC`);
      await primary.sql(`SET GLOBAL ${words.semiSync}_enabled = ON`);
      const clients = async () => await primary.sql(`SHOW STATUS LIKE '${words.semiSync}_clients'`);
      await until(async () => (await clients())[0]?.["Value"] === "1");
    },
    async caughtUp() {
      await applied((await primary.sql(words.committed))[0]?.["gtid"]);
    },
    async cutReplication() {
      // What has been received is applied: a promotion waits for it.
      await replica.sql("STOP REPLICA IO_THREAD");
    },
    async refuseWrites() {
      await primary.sql(`SET GLOBAL ${words.readOnly} = ON`);
    },
    async promote() {
      await replica.sql("STOP REPLICA IO_THREAD");
      const status = await replica.sql("SHOW REPLICA STATUS");
      await applied(status[0]?.[words.received]);
      await replica.sql("STOP REPLICA");
      await replica.sql("RESET REPLICA ALL");
      await replica.sql("SET GLOBAL read_only = OFF");
    },
  };
}
