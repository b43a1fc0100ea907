/**
 * Highest resident memory of a relay on a backlog of a million rows: it must not grow with the
 * table.
 */
import { median, rounded } from "../measure/statistics.ts";
import { startRelayProcess } from "../relay/processes.ts";
import { atMost, resultOf } from "../results/result.ts";
import type { BenchContext, Scenario } from "./scenario.ts";

const BACKLOG = 1_000_000;
const MEGABYTE = 1_000_000;
/** Several full garbage collections; the whole backlog would take minutes and show nothing more. */
const WORK_MS = 15_000;

export const outboxMemory: Scenario = { variants: [], measure: drainBacklog };

async function drainBacklog(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const backlog = options.messages ?? BACKLOG;
  context.progress(`loading ${backlog} rows`);
  await database.load({ kind: "waiting", count: backlog, first: 1 });
  await database.tidy();
  const relay = await startRelayProcess({ url: database.url, sendingMark: "on", label: "bench", record: false });
  context.progress("draining");
  const samples: number[] = [];
  const start = performance.now();
  while (performance.now() - start < WORK_MS && relay.published() < backlog) {
    samples.push(relay.memory()?.now ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const wallMs = performance.now() - start;
  const published = relay.published();
  const memory = relay.memory();
  await relay.stop();
  // An idle relay would need no memory.
  if (published === 0) throw new Error(`nothing of the backlog was published within ${WORK_MS / 1000} s`);
  const highest = rounded(memory === undefined ? null : memory.highest / MEGABYTE, 1);
  const line = resultOf({
    scenario: "outbox-memory",
    database,
    variant: `backlog of ${backlog.toLocaleString("en-US")} rows`,
    ours: [],
    figures: {
      "highest RSS MB": highest,
      "median RSS MB": rounded((median(samples) ?? 0) / MEGABYTE, 1),
      published,
      "for s": rounded(wallMs / 1000, 1),
    },
    targets: () => [atMost("highest RSS MB", highest, 150)],
  });
  context.report({ ...line, messages: backlog, ratePerSecond: rounded((published / wallMs) * 1000, 0), runs: 1 });
}
