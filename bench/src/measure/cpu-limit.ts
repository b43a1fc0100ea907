import { cpus } from "node:os";
import type { Measurement } from "./meter.ts";

/**
 * Highest rate in messages a second, at which every processor is busy if each message costs the CPU
 * time of all parts (client and servers). Null if a server's CPU time is unknown.
 */
export function cpuLimitOf(parts: readonly Measurement[], processors: number = cpus().length): number | null {
  let msPerMessage = 0;
  for (const { clientCpuMs, serverCpuMs, otherCpuMs, messages } of parts) {
    if (serverCpuMs === null || otherCpuMs === null) return null;
    msPerMessage += (clientCpuMs + serverCpuMs + otherCpuMs) / messages;
  }
  return (processors * 1000) / msPerMessage;
}
