/** A primary and its replica, and what an operator does with them. */
import { rm } from "node:fs/promises";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { makeMariadbData } from "../own-servers/own-mariadb.ts";
import { makeMysqlData } from "../own-servers/own-mysql.ts";
import { makePostgresData } from "../own-servers/own-postgres.ts";
import type { OwnServer } from "../own-servers/own-server.ts";
import { startMariadbPair, startMysqlPair } from "./mysql-pair.ts";
import { startPostgresPair } from "./postgres-pair.ts";

export type PairKind = "mariadb" | "mysql" | "postgres";

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
  /** Makes the replica a primary, with all that it has received. */
  promote(): Promise<void>;
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
    await Promise.all(pairs.splice(0).flatMap(({ primary, replica }) => [primary.drop(), replica.drop()]));
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

const openMysql = (address: string): Database => mysql({ url: `mysql://app@${address}/shop` });

const KINDS = {
  mariadb: { makeData: makeMariadbData, start: startMariadbPair, open: openMysql },
  mysql: { makeData: makeMysqlData, start: startMysqlPair, open: openMysql },
  postgres: {
    makeData: makePostgresData,
    start: startPostgresPair,
    open: (address: string): Database => postgres({ url: `postgres://app@${address}/shop` }),
  },
} as const;
