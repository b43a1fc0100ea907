/**
 * Measures one stretch of work: wall time, CPU time of client and server, statements, and how much
 * others disturbed it.
 */
import { cpus } from "node:os";
import { machineBusyMs, readProcess } from "./processes.ts";

/** Where a meter reads its numbers. */
export interface MeterSources {
  /** CPU time of the database server so far; undefined when it cannot be known. */
  serverCpuMs(): number | undefined;
  /** Statements that the server (or its driver) has counted so far. */
  statements(): Promise<number>;
  /**
   * CPU time of another server that takes part, the broker: not foreign. Undefined when it cannot
   * be known.
   */
  otherCpuMs?(): number | undefined;
  /**
   * Client processes beside this one, such as relays in processes of their own. They must live
   * until the meter stops.
   */
  readonly clientProcesses?: readonly number[];
}

/** What one stretch of work took. */
export interface Measurement {
  readonly messages: number;
  readonly wallMs: number;
  readonly clientCpuMs: number;
  /** Null: the server is not on this machine. For SQLite 0, its work is the client's. */
  readonly serverCpuMs: number | null;
  /** Null: there is another server, and it is not on this machine. 0 when there is none. */
  readonly otherCpuMs: number | null;
  readonly statements: number;
  /**
   * Share of all processors that went to programs that have no part in the measurement. Above some
   * 15 the rates say little.
   */
  readonly foreignCpuPercent: number | null;
}

export interface Meter {
  /**
   * Starts the clocks anew, at once: for work that has a beginning of its own. Statements go on
   * counting from the start.
   */
  restart(): void;
  /**
   * Reads everything again. `messages`: how many the stretch was about. `wallMs` when the caller's
   * own clock is more exact.
   */
  stop(messages: number, wallMs?: number): Promise<Measurement>;
}

/**
 * Reads the statement counter first and the clock last, so that neither reading is part of the
 * stretch.
 */
export async function startMeter(sources: MeterSources): Promise<Meter> {
  const statements = await sources.statements();
  const own = await sources.statements();
  // Asking costs statements too where the server counts them: known, so that it can be taken off.
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

/** Messages in a second. */
export function rateOf(measurement: Measurement): number {
  return (measurement.messages / measurement.wallMs) * 1000;
}
