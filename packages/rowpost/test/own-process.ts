/** Processes that a test started and may freeze or end, by their process id. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/**
 * SIGKILL at once, before the promise is returned: no output is flushed, no client is told.
 * Resolves when the process is gone.
 */
export async function killProcess(pid: number): Promise<void> {
  if (!(pid > 1)) throw new Error(`${pid} is no process id`);
  process.kill(pid, "SIGKILL");
  const end = performance.now() + 10_000;
  while (lives(pid)) {
    if (performance.now() > end) throw new Error(`process ${pid} is still there 10 s after SIGKILL`);
    await delay(5);
  }
}

/**
 * SIGSTOP. Resolves when it stands still: kill(2) comes back while the threads of a busy process
 * still run. Linux only.
 */
export async function freezeProcess(pid: number): Promise<void> {
  if (!(pid > 1)) throw new Error(`${pid} is no process id`);
  process.kill(pid, "SIGSTOP");
  await untilStopped(pid);
}

/**
 * Resolves when every thread of the process is stopped, by whomever; rejects when it ends instead.
 */
export async function untilStopped(pid: number): Promise<void> {
  for (let states = threadStates(pid); states.some((state) => state !== "T"); states = threadStates(pid)) {
    if (states.every((state) => state === "Z" || state === "X")) throw new Error(`process ${pid} ended`);
    await delay(1);
  }
}

/** As the kernel's letters: T is stopped, Z and X have ended. */
function threadStates(pid: number): string[] {
  const threads = `/proc/${pid}/task`;
  return (existsSync(threads) ? readdirSync(threads) : ["gone"]).map((thread) => {
    try {
      return /\) (\S)[^)]*$/.exec(readFileSync(`${threads}/${thread}/stat`, "utf8"))?.[1] ?? "X";
    } catch {
      return "X";
    }
  });
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
