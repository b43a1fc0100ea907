/** A PostgreSQL of a test's own, from the installed programs. */
import { readdirSync, readFileSync } from "node:fs";
import { chmod, chown, cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { launch, type OwnServer, type Programs, programsFolder, runProgram, temporaryFolder } from "./own-server.ts";

const DEBIAN = "/usr/lib/postgresql";
const programs = programsFolder(
  ["postgres", "initdb"],
  [process.env["POSTGRES_BIN"] ?? "", ...debianVersions().map((version) => join(DEBIAN, version, "bin"))],
);

/** For `describeWithPrograms`. */
export const postgresPrograms: Programs = {
  name: "postgres",
  isThere: programs !== undefined,
  install: "apt-get install postgresql",
};

/** PostgreSQL refuses to run as root; this account owns nothing else. */
const nobody = 65534;
const asRoot = process.getuid?.() === 0;
const account = asRoot ? { uid: nobody, gid: nobody } : {};

/** Newest first. */
function debianVersions(): readonly string[] {
  try {
    return readdirSync(DEBIAN).sort((left, right) => Number(right) - Number(left));
  } catch {
    return [];
  }
}

/** A data folder as it is made, to be copied. */
export async function makePostgresData(): Promise<string> {
  const folder = await temporaryFolder("postgres-data");
  if (asRoot) await chown(folder, nobody, nobody);
  await runProgram(
    join(programs ?? "", "initdb"),
    ["-D", join(folder, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
    { cwd: folder, ...account },
  );
  return folder;
}

/** Where it listens, and settings of its own. */
export interface OwnPostgresOptions {
  readonly host?: string;
  readonly port: number;
  /** Of `makePostgresData`. */
  readonly from: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** Done to the data folder before the start; files that this makes are given to the account. */
  readonly prepare?: (data: string) => Promise<void>;
}

/** Starts one on a copy of the data. A primary makes the account `app` and its database. */
export async function startOwnPostgres(options: OwnPostgresOptions): Promise<OwnServer> {
  const { host = "127.0.0.1", port, from, prepare } = options;
  const folder = await temporaryFolder("postgres");
  const data = join(folder, "data");
  await cp(join(from, "data"), data, { recursive: true });
  await prepare?.(data);
  await own(data);
  // Nothing has to reach the disk: a SIGKILL loses no page cache.
  const settings = {
    listen_addresses: host,
    unix_socket_directories: "",
    max_connections: "100",
    shared_buffers: "16MB",
    fsync: "off",
    full_page_writes: "off",
    ...options.settings,
  };
  const processes = await launch({
    folder,
    command: [
      ...[join(programs ?? "", "postgres"), "-D", data, "-p", String(port)],
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    ready: "ready to accept",
    account,
  });
  const segment = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[6]?.trim().split(/\s+/)[1];
  const sql: OwnServer["sql"] = (text) => ask({ host, port, user: "postgres", database: "postgres" }, text);
  return {
    host,
    port,
    folder,
    ...processes,
    url: `postgres://app@${host}:${port}/shop`,
    sql,
    async endSessions() {
      await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    },
    async drop() {
      await processes.drop();
      // One that was killed leaves the piece of shared memory that keeps a second server off its
      // data.
      if (segment !== undefined) await runProgram("ipcrm", ["-m", segment]).catch(() => undefined);
    },
  };
}

/** What a server must have before an application can use it; not for a replica. */
export async function makeShop(server: OwnServer): Promise<void> {
  await server.sql("CREATE ROLE app LOGIN");
  await server.sql("CREATE DATABASE shop OWNER app");
}

async function ask(where: object, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ ...where, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The copy is root's, if that is who we are. */
async function own(data: string): Promise<void> {
  await chmod(data, 0o700);
  if (!asRoot) return;
  const inside = await readdir(data, { recursive: true });
  await Promise.all([data, ...inside.map((name) => join(data, name))].map((path) => chown(path, nobody, nobody)));
}
