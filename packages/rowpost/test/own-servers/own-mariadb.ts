/** A MariaDB of a test's own, from the installed programs. */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { launch, type OwnServer, type Programs, programsFolder, runProgram, temporaryFolder } from "./own-server.ts";

const PROGRAMS = ["mariadbd", "mariadb-install-db"] as const;
const [server, install] = PROGRAMS.map((name) => programsFolder([name], []));

/** For `describeWithPrograms`. */
export const mariadbPrograms: Programs = {
  name: "mariadb",
  isThere: server !== undefined && install !== undefined,
  install: "apt-get install mariadb-server",
};

/**
 * A server that starts deletes all `#sql` files of its folder for temporary files, also those of
 * another server that runs: so none is shared, least of all /tmp, where the system's server has its
 * own.
 */
async function temporaryFiles(folder: string): Promise<string> {
  const made = join(folder, "tmp");
  await mkdir(made);
  return `--tmpdir=${made}`;
}

const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];

/** Little of everything: the data does not outlive the test, and a SIGKILL loses no page cache. */
const SMALL = ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=24M"];

/** Neither account is replicated: each server makes them for itself. */
const ACCOUNTS = `SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS 'root'@'%';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'app'@'%';
GRANT ALL ON shop.* TO 'app'@'%';
`;

/** A data folder as it is made, to be copied: making one takes seconds. */
export async function makeMariadbData(): Promise<string> {
  const folder = await temporaryFolder("mariadb-data");
  const data = join(folder, "data");
  await runProgram(join(install ?? "", "mariadb-install-db"), [
    ...["--no-defaults", ...asRoot, `--datadir=${data}`, await temporaryFiles(folder), ...SMALL],
    ...["--auth-root-authentication-method=normal", "--skip-test-db"],
  ]);
  return folder;
}

/** Where it listens, and options of its own. */
export interface OwnMariadbOptions {
  readonly host?: string;
  readonly port: number;
  /** Of `makeMariadbData`. */
  readonly from: string;
  readonly settings?: readonly string[];
}

/** Starts one on a copy of the data. */
export async function startOwnMariadb(options: OwnMariadbOptions): Promise<OwnServer> {
  const { host = "127.0.0.1", port, from, settings = [] } = options;
  const folder = await temporaryFolder("mariadb");
  await cp(join(from, "data"), join(folder, "data"), { recursive: true });
  const accounts = join(folder, "accounts.sql");
  await writeFile(accounts, ACCOUNTS);
  const processes = await launch({
    folder,
    command: [
      join(server ?? "", "mariadbd"),
      ...["--no-defaults", ...asRoot, `--datadir=${folder}/data`, `--bind-address=${host}`, `--port=${port}`, ...SMALL],
      ...[`--socket=${folder}/socket`, `--pid-file=${folder}/pid`, "--skip-name-resolve", `--init-file=${accounts}`],
      await temporaryFiles(folder),
      ...["--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF", "--character-set-server=utf8mb4"],
      ...settings,
    ],
    ready: "ready for connections",
  });
  return {
    ...{ host, port, folder, ...processes, url: `mysql://app@${host}:${port}/shop` },
    async sql(text) {
      const connection = await createConnection({
        socketPath: `${folder}/socket`,
        user: "root",
        bigNumberStrings: true,
      });
      try {
        const [rows] = await connection.query(text);
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      } finally {
        connection.destroy();
      }
    },
  };
}
