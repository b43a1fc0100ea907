/** Runs the built command line (`npm run build`) as a child process, as a user would. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Database } from "rowpost";
import { runCommandLine } from "../src/cli/program.ts";

const BIN = fileURLToPath(new URL("../dist/bin.js", import.meta.url));

/** How a command ended. */
export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  stdout(): string;
  stderr(): string;
  /** Resolves once the text stands in either output; rejects when the command ends before. */
  printed(text: string | RegExp): Promise<void>;
}

/** Starts `rowpost ARGS`. The environment has no ROWPOST_ variables but those given. */
export function startRowpost(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  if (!existsSync(BIN)) throw new Error(`${BIN} is missing: run \`npm run build\` first (\`npm test\` does)`);
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("ROWPOST_"));
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const each of waiting) each();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    look();
  });
  const finished = new Promise<Finished>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    child,
    finished,
    stdout: () => stdout,
    stderr: () => stderr,
    async printed(text) {
      const seen = new Promise<true>((resolve) => {
        const check = (): void => {
          const has = (output: string): boolean =>
            typeof text === "string" ? output.includes(text) : text.test(output);
          if (!has(stdout) && !has(stderr)) return;
          waiting.delete(check);
          resolve(true);
        };
        waiting.add(check);
        check();
      });
      const outcome = await Promise.race([seen, finished]);
      if (outcome !== true) throw new Error(`the command ended before it printed ${text}: ${JSON.stringify(outcome)}`);
    },
  };
}

/** Runs `rowpost ARGS` to its end. */
export function rowpost(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  return startRowpost(args, env).finished;
}

/**
 * Runs `rowpost ARGS` in this process, from the sources: a hundred processes would take a minute.
 * Relays log to the real standard error.
 */
export async function rowpostHere(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  let stdout = "";
  let stderr = "";
  const code = await runCommandLine(args, {
    environment,
    stdout: {
      write(text) {
        stdout += text;
      },
    },
    stderr: {
      write(text) {
        stderr += text;
      },
    },
  });
  return { code, stdout, stderr };
}

/** A SQLite file in a folder of its own. */
export async function temporaryFile(): Promise<{
  readonly url: string;
  readonly file: string;
  remove(): Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-cli-"));
  const file = join(folder, "test.db");
  return { url: `sqlite:${file}`, file, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A SQLite file, and `rowpost queue …` on it, in this process. */
export interface QueueFile extends Awaited<ReturnType<typeof temporaryFile>> {
  readonly queue: (...args: readonly string[]) => ReturnType<typeof rowpostHere>;
}

/** Makes the file; its tables come with the first topic. */
export async function temporaryQueue(): Promise<QueueFile> {
  const place = await temporaryFile();
  return { ...place, queue: (...args) => rowpostHere(["queue", ...args, "--database", place.url]) };
}

/** Inserts messages as any program would, by plain SQL. Keys are `PREFIX-0`, `PREFIX-1`, … */
export async function insertMessages(
  database: Database,
  messages: { readonly count: number; readonly topic: string; readonly prefix: string },
): Promise<void> {
  const session = await database.connect({ purpose: "tool" });
  try {
    await session.transaction(async (tx) => {
      for (let index = 0; index < messages.count; index += 1) {
        await tx.run({
          name: "testInsert",
          text: `INSERT INTO local_message (message_type, message_key, topic, message_body)
VALUES ('order.created', '${messages.prefix}-${index}', '${messages.topic}', '{"index":${index},"name":"王芳"}')`,
          params: [],
        });
      }
    });
  } finally {
    await session.close();
  }
}
