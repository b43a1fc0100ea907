/**
 * Measures a stretch of work: wall time, CPU time of client and server, statements, and disturbance
 * by other programs.
 */
import { cpus } from "node:os";
import { machineBusyMs, readProcess } from "./processes.ts";

export interface MeterSources {
  /** CPU time of the database server so far; undefined if unknown. */
  serverCpuMs(): number | undefined;
  /** Statements counted so far by the server or its driver. */
  statements(): Promise<number>;
  /**
   * CPU time of another server involved, the broker, so that it does not count as foreign.
   * Undefined if unknown.
   */
  otherCpuMs?(): number | undefined;
  /** Other client processes, such as relays. They must live until the meter stops. */
  readonly clientProcesses?: readonly number[];
}

export interface Measurement {
  readonly messages: number;
  readonly wallMs: number;
  readonly clientCpuMs: number;
  /** Null: the server is not on this machine. For SQLite 0, because its work is the client's. */
  readonly serverCpuMs: number | null;
  /** Null: there is another server, and it is not on this machine. 0 if there is none. */
  readonly otherCpuMs: number | null;
  readonly statements: number;
  /** Share of all processors used by unrelated programs. Above about 15 the rates mean little. */
  readonly foreignCpuPercent: number | null;
}

export interface Meter {
  /** Restarts the clocks, for work with its own beginning. Statements count from the start. */
  restart(): void;
  /**
   * Reads everything again. `messages`: number in the stretch. `wallMs`: if the caller's clock is
   * more exact.
   */
  stop(messages: number, wallMs?: number): Promise<Measurement>;
}

/** Reads the statement counter first and the clock last, so that neither is part of the stretch. */
export async function startMeter(sources: MeterSources): Promise<Meter> {
  const statements = await sources.statements();
  const own = await sources.statements();
  // Reading the counter may count as statements; measured so that it can be subtracted.
  const costOfAsking = own - statements;
  let before = readCpu(sources);
  let cpu = process.cpuUsage();
  let start = performance.now();
  return {
    restart() {
      before = readCpu(sources);
      cpu = process.cpuUsage();
      start = performance.now();
    },
    async stop(messages, wallMs) {
      const wall = performance.now() - start;
      const { user, system } = process.cpuUsage(cpu);
      const after = readCpu(sources);
      const counted = (await sources.statements()) - own - costOfAsking;
      const clientCpuMs = (user + system) / 1000 + after.clients - before.clients;
      const serverCpuMs = spent(before.server, after.server);
      const otherCpuMs = spent(before.other, after.other);
      const foreign =
        after.machine === undefined || before.machine === undefined || serverCpuMs === null
          ? null
          : Math.max(0, after.machine - before.machine - clientCpuMs - serverCpuMs - (otherCpuMs ?? 0));
      return {
        messages,
        wallMs: wallMs ?? wall,
        clientCpuMs,
        serverCpuMs,
        otherCpuMs,
        statements: counted,
        foreignCpuPercent: foreign === null ? null : (foreign / wall / cpus().length) * 100,
      };
    },
  };
}

function spent(before: number | undefined, after: number | undefined): number | null {
  return before === undefined || after === undefined ? null : after - before;
}

function readCpu(sources: MeterSources): {
  server: number | undefined;
  clients: number;
  other: number | undefined;
  machine: number | undefined;
} {
  return {
    server: sources.serverCpuMs(),
    clients: (sources.clientProcesses ?? []).reduce((sum, pid) => sum + (readProcess(pid)?.ownMs ?? 0), 0),
    other: sources.otherCpuMs === undefined ? 0 : sources.otherCpuMs(),
    machine: machineBusyMs(),
  };
}

export function rateOf(measurement: Measurement): number {
  return (measurement.messages / measurement.wallMs) * 1000;
}
