/** What the processors of the machine allow. */
import { cpus } from "node:os";
import type { Measurement } from "./meter.ts";

/**
 * The highest rate, in messages a second, at which every processor is busy, when each message costs
 * the CPU time of all the parts together: client and servers. Null when the CPU time of a server is
 * unknown.
 */
export function cpuLimitOf(parts: readonly Measurement[], processors: number = cpus().length): number | null {
  let msPerMessage = 0;
  for (const { clientCpuMs, serverCpuMs, otherCpuMs, messages } of parts) {
    if (serverCpuMs === null || otherCpuMs === null) return null;
    msPerMessage += (clientCpuMs + serverCpuMs + otherCpuMs) / messages;
  }
  return (processors * 1000) / msPerMessage;
}
