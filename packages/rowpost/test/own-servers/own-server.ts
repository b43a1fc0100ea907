/**
 * Servers of a test's own: a database that it may kill, freeze, promote, or give another
 * certificate. Each listens on loopback, has a temporary data folder, and ends with the process
 * that started it, however that ends.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { untilStopped } from "../own-process.ts";
import { describeUnlessMissing } from "../services.ts";

/** Runs a program to its end. */
export const runProgram: typeof execFile.__promisify__ = promisify(execFile);

/** A server that is running, or was. */
export interface OwnServer {
  readonly host: string;
  readonly port: number;
  /** Its data folder lies in this one. */
  readonly folder: string;
  /** `scheme://app@host:port/shop`: an account that owns its database and no more. */
  readonly url: string;
  /** As the administrator, on a connection of its own. */
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Ends the sessions that applications have. */
  endSessions(): Promise<void>;
  /** SIGKILL for all of its processes at once, as a host that loses its power. */
  kill(): Promise<void>;
  /** SIGSTOP for all of its processes: connections stay open, and nothing answers. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Ends it, if it still runs, and deletes its data. */
  drop(): Promise<void>;
}

/** What a kind of server brings to {@link launch}. */
export interface Launch {
  readonly folder: string;
  readonly command: readonly string[];
  /** What it prints on standard error once it takes connections. */
  readonly ready: string;
  /** Whom it runs as. */
  readonly account?: { readonly uid?: number; readonly gid?: number };
}

export type Processes = Pick<OwnServer, "kill" | "freeze" | "thaw" | "drop">;

/**
 * A shell holds the other end of a pipe to us and kills the server when the pipe closes. It tells
 * the server's process id first.
 */
const guard = '"$@" 3>&- & echo $! >&3; exec 3>&-; cat >/dev/null; kill -KILL $! 2>/dev/null; wait $!';

/** Starts a server. Rejects with its own output when it ends before it is ready. */
export async function launch({ folder, command, ready, account = {} }: Launch): Promise<Processes> {
  const shell = spawn("/bin/sh", ["-c", guard, "guard", ...command], {
    cwd: folder,
    stdio: ["pipe", "ignore", "pipe", "pipe"],
    ...account,
  });
  const pid = await untilReady(shell, ready);
  const all = (): readonly number[] => [pid, ...childrenOf(pid)];
  const signal = (name: NodeJS.Signals, to: readonly number[]): void => {
    for (const each of to) {
      try {
        process.kill(each, name);
      } catch {
        // It has ended by itself.
      }
    }
  };

  async function kill(): Promise<void> {
    // Stopped first: it must not notice that its children go, nor start others.
    signal("SIGSTOP", [pid]);
    await untilStopped(pid);
    const those = all();
    signal("SIGKILL", those);
    while (those.some(lives)) await delay(5);
  }

  return {
    kill,
    async freeze() {
      signal("SIGSTOP", [pid]);
      await untilStopped(pid);
      signal("SIGSTOP", all());
      // One that has ended meanwhile stays a zombie, since its parent stands still.
      for (const each of all().filter(lives)) await untilStopped(each);
    },
    thaw: () => signal("SIGCONT", all().toReversed()),
    async drop() {
      if (lives(pid)) await kill();
      shell.stdin?.end();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function untilReady(shell: ChildProcess, ready: string): Promise<number> {
  const { stderr, stdio } = shell;
  const told = stdio[3];
  if (stderr === null || told === null || told === undefined) throw new Error("the server's output is not piped");
  const lines = createInterface({ input: stderr });
  const seen: string[] = [];
  const isReady = new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => {
      seen.push(line);
      if (line.includes(ready)) resolve();
    });
    shell.once("error", reject);
    lines.once("close", () => reject(new Error(`a server ended while starting:\n${seen.join("\n")}`)));
  });
  const pid = new Promise<number>((resolve) => {
    told.once("data", (text: Buffer) => resolve(Number(text.toString())));
  });
  await isReady;
  // Read on and forget: a full pipe would stop the server.
  lines.removeAllListeners("line").on("line", () => {});
  return await pid;
}

/** Direct children: PostgreSQL's own processes are that; MySQL and MariaDB have threads alone. */
function childrenOf(pid: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
}

function parentOf(pid: string): number {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    return Number.NaN;
  }
}

/** A zombie has ended, and its parent has not looked yet. */
function lives(pid: number): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** A folder that any account may enter: a server may have to run as another one. */
export async function temporaryFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `rowpost-own-${name}-`));
  await chmod(folder, 0o755);
  return folder;
}

/** The folder that holds these programs, of those given and of PATH. */
export function programsFolder(names: readonly string[], folders: readonly string[]): string | undefined {
  const all = [...folders, ...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return all.find((folder) => names.every((name) => isProgram(join(folder, name))));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What a kind of server is made of. */
export interface Programs {
  readonly name: string;
  readonly isThere: boolean;
  /** How to get them. */
  readonly install: string;
}

/** `describe` for tests that start such a server, and look at processes as on Linux. */
export function describeWithPrograms({ install, isThere, name }: Programs, title: string, define: () => void): void {
  const reason = process.platform === "linux" ? `no ${name} here: ${install}` : "needs Linux";
  const missing = process.platform === "linux" && isThere ? undefined : reason;
  describeUnlessMissing({ title, name, missing }, define);
}
