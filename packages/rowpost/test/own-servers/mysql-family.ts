/** What the own servers of MySQL and MariaDB have in common. */
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { launch, type OwnServer, temporaryFolder } from "./own-server.ts";

/** Where it listens, and options of its own. */
export interface OwnMysqlOptions {
  readonly host?: string;
  readonly port: number;
  /** A folder with the data that is to be copied. */
  readonly from: string;
  readonly settings?: readonly string[];
}

/** Neither account is replicated: each server makes them for itself. */
const ACCOUNTS = `SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS 'root'@'%';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'app'@'%';
GRANT ALL ON shop.* TO 'app'@'%';
`;

/** Starts `command` on a copy of the data. */
export async function startOwnOfFamily(
  name: string,
  command: readonly string[],
  options: OwnMysqlOptions,
): Promise<OwnServer> {
  const { host = "127.0.0.1", port, from, settings = [] } = options;
  const folder = await temporaryFolder(name);
  await cp(join(from, "data"), join(folder, "data"), { recursive: true });
  // MySQL keeps the server's name for replication there, and makes another one.
  await rm(join(folder, "data", "auto.cnf"), { force: true });
  // In a folder that it shares, a server that starts deletes the temporary tables of all others.
  await mkdir(join(folder, "tmp"));
  const accounts = join(folder, "accounts.sql");
  await writeFile(accounts, ACCOUNTS);
  const processes = await launch({
    folder,
    command: [
      ...[...command, `--datadir=${folder}/data`, `--tmpdir=${folder}/tmp`, `--bind-address=${host}`, `--port=${port}`],
      ...[`--socket=${folder}/socket`, `--pid-file=${folder}/pid`, "--skip-name-resolve", `--init-file=${accounts}`],
      ...["--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF", "--character-set-server=utf8mb4"],
      ...settings,
    ],
    ready: "ready for connections",
  });

  async function sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const connection = await createConnection({ socketPath: `${folder}/socket`, user: "root", bigNumberStrings: true });
    try {
      const [rows] = await connection.query(text);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
    } finally {
      connection.destroy();
    }
  }

  return {
    host,
    port,
    folder,
    ...processes,
    url: `mysql://app@${host}:${port}/shop`,
    sql,
    async endSessions() {
      for (const { Id, User } of await sql("SHOW PROCESSLIST")) {
        if (User === "app") await sql(`KILL ${Number(Id)}`).catch(ignoreGone);
      }
    },
  };
}

/** 1094: it has ended by itself meanwhile. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof Error && "errno" in error && error.errno === 1094)) throw error;
}
