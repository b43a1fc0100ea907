/** A MariaDB of a test's own, from the installed programs. */
import { join } from "node:path";
import { type OwnMysqlOptions, startOwnOfFamily } from "./mysql-family.ts";
import { type OwnServer, type Programs, programsFolder, runProgram, temporaryFolder } from "./own-server.ts";

const PROGRAMS = ["mariadbd", "mariadb-install-db"] as const;
const [server, install] = PROGRAMS.map((name) => programsFolder([name], []));

/** For `describeWithPrograms`. */
export const mariadbPrograms: Programs = {
  name: "mariadb",
  isThere: server !== undefined && install !== undefined,
  install: "apt-get install mariadb-server",
};

const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];

/** Little of everything: the data does not outlive the test, and a SIGKILL loses no page cache. */
const SMALL = ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=24M"];

/** A data folder as it is made, to be copied: making one takes seconds. */
export async function makeMariadbData(): Promise<string> {
  const folder = await temporaryFolder("mariadb-data");
  await runProgram(join(install ?? "", "mariadb-install-db"), [
    ...["--no-defaults", ...asRoot, `--datadir=${folder}/data`, `--tmpdir=${folder}`, ...SMALL],
    ...["--auth-root-authentication-method=normal", "--skip-test-db"],
  ]);
  return folder;
}

/** Starts one on a copy of the data, which is of `makeMariadbData`. */
export async function startOwnMariadb(options: OwnMysqlOptions): Promise<OwnServer> {
  const command = [join(server ?? "", "mariadbd"), "--no-defaults", ...asRoot, ...SMALL];
  return await startOwnOfFamily("mariadb", command, options);
}
