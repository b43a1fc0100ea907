/**
 * Profile of this process's main thread by V8's sampling profiler: shows what limits a figure that
 * misses its target.
 */
import { type Profiler, Session } from "node:inspector/promises";

/** A running profiler. It costs some percent, so no rate is measured beside it. */
export interface ProfileRun {
  /** Start of the work; earlier samples do not count. */
  begin(): void;
  /** End of the work; later samples do not count. */
  end(): void;
  /**
   * Stops the profiler. Percentages of the work's time, the largest first: `idle 31, mysql2 24,
   * rowpost/relay 9`.
   */
  shares(): Promise<string>;
}

/** Microseconds; fine enough for a stretch of a second. */
const SAMPLE_EVERY_US = 250;
/** Smaller shares are summed up as `rest`. */
const LEAST_PERCENT = 1;

export async function startProfile(): Promise<ProfileRun> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY_US });
  await session.post("Profiler.start");
  let fromUs = 0;
  let toUs = Number.POSITIVE_INFINITY;
  return {
    begin() {
      fromUs = nowUs();
    },
    end() {
      toUs = nowUs();
    },
    async shares() {
      const { profile } = await session.post("Profiler.stop");
      session.disconnect();
      return sharesText(timeByPart(profile, fromUs, toUs));
    },
  };
}

/** On the profile's own clock: starting it takes a second with much code loaded. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** Microseconds of each part between two instants of the profile's clock. */
export function timeByPart(
  { nodes, samples = [], startTime, timeDeltas = [] }: Profiler.Profile,
  fromUs: number,
  toUs: number,
): ReadonlyMap<string, number> {
  const parts = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const spent = new Map<string, number>();
  let at = startTime;
  // A delta is the time since the previous sample, to which it belongs.
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index] ?? 0;
    const lasted = timeDeltas[index + 1];
    if (at < fromUs || at > toUs || lasted === undefined) continue;
    const part = parts.get(id) ?? "?";
    spent.set(part, (spent.get(part) ?? 0) + lasted);
  }
  return spent;
}

/** `idle 31, mysql2 24, …`, in whole percent. */
export function sharesText(spent: ReadonlyMap<string, number>): string {
  const total = [...spent.values()].reduce((sum, us) => sum + us, 0);
  const percent = (us: number): number => Math.round((us / total) * 100);
  const large = [...spent].filter(([, us]) => percent(us) >= LEAST_PERCENT).sort(([, left], [, right]) => right - left);
  const rest = total - large.reduce((sum, [, us]) => sum + us, 0);
  const words = large.map(([part, us]) => `${part} ${percent(us)}`);
  return (percent(rest) >= LEAST_PERCENT ? [...words, `rest ${percent(rest)}`] : words).join(", ");
}

/** Our folder, or the package with its dependencies, of a frame. */
function partOf({ functionName, url }: { readonly functionName: string; readonly url: string }): string {
  if (functionName === "(garbage collector)") return "garbage collection";
  // Outside of JavaScript: system calls of the event loop, mostly sockets.
  if (functionName === "(program)") return "event loop and system calls";
  if (/^\(\w+\)$/.test(functionName)) return functionName.slice(1, -1);
  const inOurs = /\/packages\/rowpost\/(?:dist|src)\/([\w-]+)/.exec(url)?.[1];
  if (inOurs !== undefined) return `rowpost/${inOurs}`;
  const inPackage = /\/node_modules\/((?:@[\w-]+\/)?[\w.-]+)\//.exec(url)?.[1];
  if (inPackage !== undefined) return inPackage;
  // V8 charges part of SQLite's work to the call that counts its statements.
  if (url === "" || /\/bench\/dist\/servers\/sqlite\.js$/.test(url)) return "native functions";
  return url.startsWith("node:") ? "node" : "bench";
}
