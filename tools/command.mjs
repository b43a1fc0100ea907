import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Runs a program in a process group of its own, which ends with its time.
 *
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv, output: Buffer[], limitMs: number }} options
 *   what the program prints is appended to `output`
 * @param {string[]} words the program and its arguments
 * @returns {Promise<void>} rejects when its exit status is not 0
 */
export async function command({ cwd, env = process.env, output, limitMs }, ...words) {
  const [program, ...args] = words;
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => output.push(data));
  const timer = setTimeout(() => {
    output.push(Buffer.from(`\nnot done after ${limitMs} ms\n`));
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, limitMs);
  try {
    const [status] = await once(child, "close");
    if (status !== 0) throw new Error(`${words.join(" ")}: exit status ${status}`);
  } finally {
    clearTimeout(timer);
  }
}
