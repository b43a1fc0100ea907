/**
 * Facts about Linux processes: CPU time by process id, listener of a port, resident memory.
 * Everything is `undefined` if unknown (another operating system, a server in a container or on
 * another machine), because a missing figure is better than a wrong one.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Clock ticks per second in /proc, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** One line of /proc/PID/stat, in milliseconds of CPU time. */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  /** User and system time of all threads, including ended ones. */
  readonly ownMs: number;
  /** The same of ended children that were waited for. */
  readonly endedChildrenMs: number;
}

export function readProcess(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name is in parentheses and may hold blanks and parentheses; only numbers follow the last
    // one.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = (index: number): number => (Number(fields[index]) * 1000) / TICKS_PER_SECOND;
    return {
      pid,
      parent: Number(fields[1]),
      name: text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")),
      ownMs: ticks(11) + ticks(12),
      endedChildrenMs: ticks(13) + ticks(14),
    };
  } catch {
    return undefined;
  }
}

export function readProcesses(): ProcessStat[] {
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return [];
  }
  return names
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readProcess(Number(name));
      return stat === undefined ? [] : [stat];
    });
}

/**
 * CPU time of a process and its living and ended children, for servers that fork a process per
 * connection.
 */
export function cpuOfFamilyMs(root: number): number | undefined {
  // A child that ends between two reads would count twice or not at all, so reads repeat until the
  // set of children is stable.
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const before = childrenOf(root);
    const parent = readProcess(root);
    const after = childrenOf(root);
    if (parent === undefined) return undefined;
    const still = before.length === after.length && before.every(({ pid }, index) => pid === after[index]?.pid);
    if (still)
      return after.reduce(
        (sum, child) => sum + child.ownMs + child.endedChildrenMs,
        parent.ownMs + parent.endedChildrenMs,
      );
  }
  return undefined;
}

function childrenOf(root: number): ProcessStat[] {
  return readProcesses().filter(({ parent }) => parent === root);
}

/** Process that listens on a TCP port of this machine. Requires root or the process's own user. */
export function processListeningOn(port: number): number | undefined {
  const inodes = new Set(["tcp", "tcp6"].flatMap((family) => listeningInodes(family, port)));
  if (inodes.size === 0) return undefined;
  return readProcesses().find(({ pid }) => holdsSocket(pid, inodes))?.pid;
}

function listeningInodes(family: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  try {
    return readFileSync(`/proc/net/${family}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === "0A" && (fields[1] ?? "").endsWith(suffix))
      .map((fields) => `socket:[${fields[9] ?? ""}]`);
  } catch {
    return [];
  }
}

function holdsSocket(pid: number, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((descriptor) => inodes.has(linkOf(`/proc/${pid}/fd/${descriptor}`)));
  } catch {
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Busy CPU time of the whole machine since its start, for detecting other programs. */
export function machineBusyMs(): number | undefined {
  try {
    const fields = (readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "").trim().split(/\s+/).slice(1).map(Number);
    // user, nice, system, irq, softirq, steal: everything but idle and waiting for disks.
    const ticks = [0, 1, 2, 5, 6, 7].reduce((sum, index) => sum + (fields[index] ?? 0), 0);
    return (ticks * 1000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Resident memory of a process in bytes: now and at its highest. */
export function residentBytes(pid: number): { readonly now: number; readonly highest: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) * 1024;
    return { now: bytes("VmRSS"), highest: bytes("VmHWM") };
  } catch {
    return undefined;
  }
}
