/** A MySQL 9 of a test's own, from the programs that tools/services/mysql has fetched. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type OwnMysqlOptions, startOwnOfFamily } from "./mysql-family.ts";
import { type OwnServer, type Programs, runProgram, temporaryFolder } from "./own-server.ts";

const server = fetchedServer();

/** For `describeWithPrograms`. */
export const mysqlPrograms: Programs = {
  name: "mysql9",
  isThere: server !== undefined,
  install: "tools/services/mysql fetch",
};

/**
 * Little of everything: the data does not outlive the test, and a SIGKILL loses no page cache. A
 * smaller redo log takes longer to make the data.
 */
const SMALL = [
  ...["--innodb-redo-log-capacity=32M", "--innodb-buffer-pool-size=32M", "--innodb-doublewrite=OFF"],
  ...["--innodb-flush-method=nosync", "--mysqlx=OFF"],
];

/** Its words; undefined: nobody has fetched it, or this machine cannot. */
function fetchedServer(): readonly string[] | undefined {
  const script = fileURLToPath(new URL("../../../../tools/services/mysql", import.meta.url));
  try {
    const printed = execFileSync(script, ["command"], {
      encoding: "utf8",
      env: { ...process.env, MYSQL_LINE: "9" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    return printed.trimEnd().split("\n");
  } catch {
    return undefined;
  }
}

/** A data folder as it is made, to be copied: making one takes seconds. */
export async function makeMysqlData(): Promise<string> {
  const folder = await temporaryFolder("mysql-data");
  const [program = "", ...words] = server ?? [];
  const where = [`--datadir=${folder}/data`, `--tmpdir=${folder}`, "--performance-schema=OFF"];
  await runProgram(program, [...words, ...where, ...SMALL, "--initialize-insecure"]);
  return folder;
}

/** Starts one on a copy of the data, which is of `makeMysqlData`. */
export async function startOwnMysql(options: OwnMysqlOptions): Promise<OwnServer> {
  return await startOwnOfFamily("mysql", [...(server ?? []), ...SMALL], options);
}
