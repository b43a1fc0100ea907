/**
 * The real servers that tests run on: which there are, what to do when one is missing, and
 * databases of one's own on them.
 *
 *   describeWithService(["mariadb", "postgres"], "the lease", (service) => {
 *     let database: TestDatabase;
 *     beforeAll(async () => { database = await createTestDatabase(service.name); });
 *     afterAll(() => database.drop());
 *     …
 *   });
 *
 * Addresses and variables: docs/services.md. `tools/services/all.sh start` starts what is missing.
 */
import { randomBytes } from "node:crypto";
import { describe, inject, test } from "vitest";
import {
  type DatabaseServiceName,
  probe,
  type ServiceName,
  type ServiceReport,
} from "../../../tools/services/probe.js";

export type { DatabaseServiceName, ServiceName } from "../../../tools/services/probe.js";

declare module "vitest" {
  export interface ProvidedContext {
    rowpostServices: ServiceReport[];
  }
}

/** A server as the test run found it. */
export interface TestService<Name extends ServiceName = ServiceName> {
  readonly name: Name;
  /** The environment variable that moves the address. */
  readonly variable: string;
  /** `scheme://user:password@host:port/database`, as `--database` and `--broker` take it. */
  readonly address: string;
  /** Product and version, such as `MariaDB 10.11.19`; why it is missing, when it is. */
  readonly detail: string;
  /** Was it there when the test run started? */
  readonly present: boolean;
  /** Is it there now? Logs in, which takes at most 3 s. Never throws. */
  available(): Promise<boolean>;
}

/** An empty database with a name that no other test has. */
export interface TestDatabase {
  /** `rowpost_test_<pid>_<random>` */
  readonly name: string;
  /** The service's address with this database. */
  readonly url: string;
  /**
   * Ends the connections that are left in it (a killed relay leaves some) and drops it. A second
   * call does nothing.
   */
  drop(): Promise<void>;
}

/** Is this a run in which nothing may be skipped? */
export function isCi(): boolean {
  return process.env["CI"] === "true" || process.env["CI"] === "1";
}

/** The service as the start of the test run found it (test/global-setup.ts probes each once). */
export function testService<Name extends ServiceName>(name: Name): TestService<Name> {
  const reports: readonly ServiceReport[] | undefined = inject("rowpostServices");
  if (reports === undefined) {
    throw new Error(
      "no probed services: run vitest with this repository's vitest.config.ts, whose globalSetup probes them",
    );
  }
  const report = reports.find((each) => each.name === name);
  if (report === undefined) throw new Error(`tools/services/probe.js knows no service "${name}"`);
  const { address, detail, present, variable } = report;
  return { name, variable, address, detail, present, available: async () => (await probe(name, address)).present };
}

/**
 * `describe` for tests that need a server; with several names, one block for each. Where the server
 * is missing, the block is skipped with the reason in its title and on standard error. With CI=true
 * it is a failing test instead: CI skips nothing.
 */
export function describeWithService<Name extends ServiceName>(
  names: Name | readonly Name[],
  title: string,
  define: (service: TestService<Name>) => void,
): void {
  for (const name of [names].flat() as Name[]) {
    const service = testService(name);
    const reason = absenceReason(service);
    describeUnlessMissing({ title, name, missing: service.present ? undefined : reason }, () => define(service));
  }
}

/**
 * `usual`, and with ROWPOST_TEST_EVERY=1 (`npm run test:every`) `more` as well: combinations whose
 * statements the contracts and the statement tests run there anyway. They were a third of the time
 * of a run, and what they found a usual one had found too.
 */
export function sampled<const Item>(usual: readonly Item[], more: readonly Item[]): readonly Item[] {
  return process.env["ROWPOST_TEST_EVERY"] === "1" ? [...usual, ...more] : usual;
}

/** The same for whatever else a test needs; `missing`: why it cannot be had. */
export function describeUnlessMissing(
  { missing, name, title }: { readonly title: string; readonly name: string; readonly missing: string | undefined },
  define: () => void,
): void {
  if (missing !== undefined && isCi()) {
    describe(`${title} on ${name}`, () => {
      test(`${name} is there`, () => {
        throw new Error(missing);
      });
    });
    return;
  }
  if (missing !== undefined) console.warn(`SKIPPED: "${title}" on ${name}: ${missing}`);
  const label = missing === undefined ? "" : ` [skipped: ${missing}]`;
  describe.skipIf(missing !== undefined)(`${title} on ${name}${label}`, define);
}

/** One sentence: what is missing, why, and how to get it. */
export function absenceReason(service: Omit<ServiceReport, "present">): string {
  const { name, variable, address, detail } = service;
  return `no ${name} at ${address} (${detail}); tools/services/all.sh start ${name}, or set ${variable}`;
}

/**
 * Makes an empty database on a server. Throws when the server is not there. UTF-8 throughout:
 * utf8mb4 with the server's default collation on MySQL and MariaDB, C collation on PostgreSQL.
 */
export async function createTestDatabase(service: DatabaseServiceName): Promise<TestDatabase> {
  const { address } = testService(service);
  const name = `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  const url = new URL(address);
  url.pathname = `/${name}`;
  const { create, drop } = service === "postgres" ? postgresStatements : mysqlStatements;
  await create(address, name);
  let dropped = false;
  return {
    name,
    url: url.href,
    drop: async () => {
      if (dropped) return;
      dropped = true;
      await drop(address, name);
    },
  };
}

interface DatabaseStatements {
  readonly create: (address: string, name: string) => Promise<void>;
  readonly drop: (address: string, name: string) => Promise<void>;
}

const mysqlStatements: DatabaseStatements = {
  create: (address, name) =>
    withMysql(address, async (query) => {
      await query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
    }),
  drop: (address, name) =>
    withMysql(address, async (query) => {
      // A transaction left open holds metadata locks that DROP would wait for, for a day by
      // default.
      const sessions = await query("SHOW FULL PROCESSLIST");
      for (const { Id, db } of sessions) if (db === name) await query(`KILL ${Number(Id)}`).catch(ignoreGone);
      await query("SET lock_wait_timeout = 20");
      await query(`DROP DATABASE IF EXISTS ${name}`);
    }),
};

const postgresStatements: DatabaseStatements = {
  // template0, because a session in template1 (an editor, say) makes CREATE DATABASE fail.
  create: (address, name) =>
    withPostgres(address, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'`),
  drop: (address, name) => withPostgres(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
};

type MysqlQuery = (sql: string) => Promise<Record<string, unknown>[]>;

async function withMysql(address: string, work: (query: MysqlQuery) => Promise<void>): Promise<void> {
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection({ uri: address.replace(/^mariadb:/, "mysql:"), connectTimeout: 10_000 });
  try {
    await work(async (sql) => {
      const [rows] = await connection.query(sql);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
    });
  } finally {
    await connection.end();
  }
}

async function withPostgres(address: string, sql: string): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: address, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** 1094: the connection ended by itself between our look and the KILL. */
function ignoreGone(error: unknown): Record<string, unknown>[] {
  if (error instanceof Error && "errno" in error && error.errno === 1094) return [];
  throw error;
}
