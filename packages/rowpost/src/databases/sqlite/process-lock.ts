/**
 * Process names in place of session locks. Only processes of one host use a file in WAL mode, and
 * the kernel knows which of them live (rule: session-lock).
 */
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Name of this process: boot, pid namespace, pid and start time, to exclude later processes with
 * the same pid and other containers. Undefined without Linux's /proc.
 */
export function processLock(): string | undefined {
  const place = placeOf();
  const start = startOf("self");
  return place === undefined || start === undefined ? undefined : `${place}:${process.pid}:${start}`;
}

/** Those of these processes that have ended. A name from another place counts as alive. */
export function endedProcesses(locks: readonly string[]): string[] {
  const place = placeOf();
  return locks.filter((lock) => {
    const [, from, pid, start] = /^(.*):(\d+):(\d+)$/.exec(lock) ?? [];
    return place !== undefined && from === place && startOf(pid ?? "") !== start;
  });
}

function placeOf(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot}:${readlinkSync("/proc/self/ns/pid").replace(/\D/g, "")}`;
  } catch {
    return undefined;
  }
}

/** Start time in ticks since boot; undefined for a missing process or an unreaped dead one. */
function startOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The program name, in parentheses, may contain anything; the state follows it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
