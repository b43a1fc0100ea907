/** Runs a peer's driver in a separate process and measures its drain. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { type Measurement, startMeter } from "../measure/meter.ts";
import type { BenchDatabase } from "../servers/server.ts";
import type { Peer } from "./peers.ts";

/** A JSON line of a driver's standard output. */
interface PeerLine {
  readonly kind: "ready" | "done";
  readonly published?: number;
  readonly statements?: number;
  /** From right before its commit to its publish, in ms for each message. */
  readonly latenciesMs?: readonly number[];
}

export interface PeerMeasurement extends Measurement {
  /** Empty if the driver does not report them. */
  readonly latenciesMs: readonly number[];
}

type PeerProcess = ChildProcessByStdio<Writable, Readable, null>;

/** A slower peer is not measured. */
const LIMIT_MS = 180_000;

/** Options of {@link measurePeer}. */
export interface PeerRun {
  readonly messages: number;
  readonly words?: readonly string[];
  /** Deliveries of each message. */
  readonly groups?: number;
  /** CPU time of a server beside the database. */
  readonly otherCpuMs?: () => number | undefined;
}

/** One stretch of work in an empty database. */
export async function measurePeer(
  peer: Pick<Peer, "name" | "command">,
  database: BenchDatabase,
  { groups = 1, messages, otherCpuMs, words: more = [] }: PeerRun,
): Promise<PeerMeasurement> {
  const [program = "", ...words] = [...peer.command(database.url, messages), ...more];
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${peer.name}: ${program} could not be started`);
  const lines = linesOf(child);
  try {
    await lines.next("ready");
    const meter = await startMeter({
      serverCpuMs: () => database.serverCpuMs(),
      statements: async () => (database.countsControl ? await database.statements() : 0),
      clientProcesses: [pid],
      ...(otherCpuMs === undefined ? {} : { otherCpuMs }),
    });
    meter.restart();
    child.stdin.write("go\n");
    const { latenciesMs = [], published = 0, statements = 0 } = await lines.next("done");
    const measured = await meter.stop(messages * groups);
    child.stdin.write("go\n");
    if (published !== messages * groups)
      throw new Error(`${peer.name} published ${published} of ${messages * groups} messages`);
    const counted = database.countsControl ? measured.statements : statements || Number.NaN;
    return { ...measured, statements: counted, latenciesMs };
  } finally {
    await ended(child);
  }
}

function linesOf(child: PeerProcess): { next(kind: PeerLine["kind"]): Promise<PeerLine> } {
  const waiting = new Map<string, (line: PeerLine) => void>();
  createInterface({ input: child.stdout }).on("line", (text) => {
    if (!text.startsWith("{")) return;
    const line = JSON.parse(text) as PeerLine;
    waiting.get(line.kind)?.(line);
  });
  return {
    next: (kind) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(
          () => reject(new Error(`the peer was not ${kind} after ${LIMIT_MS / 1000} s`)),
          LIMIT_MS,
        );
        const onExit = (code: number | null): void => reject(new Error(`the peer ended with exit code ${code}`));
        child.once("exit", onExit);
        waiting.set(kind, (line) => {
          clearTimeout(limit);
          child.off("exit", onExit);
          resolve(line);
        });
      }),
  };
}

/** Gives the driver some seconds to end by itself. */
async function ended(child: PeerProcess): Promise<void> {
  if (child.exitCode !== null) return;
  await new Promise<void>((resolve) => {
    const kill = setTimeout(() => child.kill("SIGKILL"), 10_000);
    child.once("exit", () => {
      clearTimeout(kill);
      resolve();
    });
  });
}
