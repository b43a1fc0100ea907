/**
 * What stands for a session lock on SQLite, which has none: the process. A file in WAL mode is used
 * by processes of one host, and there the kernel knows which of them live (rule: session-lock).
 */
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Name of this process: boot, pid namespace, pid and start time, so that neither a later process
 * with the same pid nor one of another container is taken for it. Undefined without Linux's /proc.
 */
export function processLock(): string | undefined {
  const place = placeOf();
  const start = startOf("self");
  return place === undefined || start === undefined ? undefined : `${place}:${process.pid}:${start}`;
}

/** Of these processes, those that have ended. What is named from another place is taken to live. */
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

/** Start time in ticks since the boot; undefined: no such process, or a dead one not reaped. */
function startOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program, in parentheses, may hold anything; the state follows it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
