/**
 * The console over 10,000,000 rows while a relay publishes 2,000 messages a second: each page with
 * its time limit, a bulk retry, the cost of twenty viewers for the relay, and the queries of CAP's
 * dashboard on the same table.
 */
import { type AskedConsole, openConsole } from "../console/asking.ts";
import { looksAt, PAGES, watch } from "../console/pages.ts";
import { percentile, rounded } from "../measure/statistics.ts";
import { type RelayProcess, startRelayProcess, untilShared } from "../relay/processes.ts";
import { atLeast, atMost, resultOf } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type BenchContext, inTurnTold, type Scenario, wanted } from "./scenario.ts";

const ROWS = 10_000_000;
const QUICK_ROWS = 20_000;
/** Messages published a second meanwhile, in 20 transactions. */
const PUBLISHED = 2_000;
/** Their numbers, beyond the loaded ones. */
const FIRST_PUBLISHED = 100_000_000;
/** Failed messages retried at once, and the required rate. */
const RETRIED = 20_000;
const RETRIED_PER_SECOND = 5_000;
/** Messages of a drain beside the viewers, and the share of its rate that they may cost. */
const DRAINED = 50_000;
const DRAIN_RATIO = 0.95;
const VIEWERS = 20;

export const consoleReads: Scenario = {
  variants: [...PAGES.map(({ name }) => name), "bulk", "viewers", "cap"],
  measure,
};

async function measure(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const rows = options.quick ? QUICK_ROWS : (options.messages ?? ROWS);
  context.progress(`loading ${rows} rows`);
  await database.load({ kind: "history", count: rows, first: 1 });
  await database.tidy();
  context.progress("loaded");
  const relay = await startRelayProcess({ url: database.url, sendingMark: "on", label: "bench", record: false });
  const console = await openConsole(database.url);
  try {
    await untilShared(database, 1);
    await beside(database, async () => {
      for (const page of PAGES) {
        if (!wanted(context, page.name)) continue;
        context.progress(page.name);
        await looksAt(page, console, rows, true);
        const times = await looksAt(page, console, rows, options.quick);
        reportTimes(context, page.name, times, page.p99Ms);
      }
      if (wanted(context, "cap")) await measureCap(context);
    });
    if (wanted(context, "viewers")) await measureViewers(context, relay, console);
    if (wanted(context, "bulk")) await measureBulk(context, console);
  } finally {
    await console.close();
    await relay.stop();
  }
}

function reportTimes(context: BenchContext, variant: string, times: readonly number[], limitMs: number | null): void {
  const p99Ms = percentile(times, 99) ?? null;
  context.report(
    resultOf({
      scenario: "console-reads",
      database: context.database,
      variant,
      ours: [],
      p50Ms: percentile(times, 50) ?? null,
      p99Ms,
      figures: { answers: times.length },
      targets: () => (limitMs === null ? [] : [atMost("p99Ms", rounded(p99Ms, 2), limitMs)]),
    }),
  );
}

/** Messages come in at a steady rate during the work. */
async function beside(database: BenchDatabase, work: () => Promise<void>): Promise<void> {
  let first = FIRST_PUBLISHED;
  let ended = false;
  const feeding = (async () => {
    const start = performance.now();
    for (let step = 0; !ended; step += 1) {
      const wait = start + step * 50 - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      await database.load({ kind: "waiting", count: PUBLISHED / 20, first });
      first += PUBLISHED / 20;
    }
  })();
  try {
    await work();
  } finally {
    ended = true;
    await feeding;
  }
}

/** A drain alone, and beside the viewers. */
async function measureViewers(context: BenchContext, relay: RelayProcess, console: AskedConsole): Promise<void> {
  const { database, options } = context;
  let first = 2 * FIRST_PUBLISHED;
  const drain = async (): Promise<number> => {
    const count = options.quick ? 2_000 : DRAINED;
    const before = relay.published();
    await database.load({ kind: "waiting", count, first, oneTransaction: true });
    first += count;
    const began = performance.now();
    while (relay.published() < before + count) await new Promise((resolve) => setTimeout(resolve, 5));
    return (count / (performance.now() - began)) * 1000;
  };
  const watched = async (): Promise<number> => {
    const ended = new AbortController();
    const watching = watch(console, VIEWERS, ended.signal);
    const rate = await drain();
    ended.abort();
    await watching;
    return rate;
  };
  await drain();
  const { raw: alone, ours } = await inTurnTold(context, drain, watched);
  const ratio = rounded(
    percentile(
      ours.map((rate, run) => rate / (alone[run] ?? rate)),
      50,
    ),
    3,
  );
  context.report(
    resultOf({
      scenario: "console-reads",
      database,
      variant: "viewers",
      ours: [],
      figures: {
        "drain beside 20 viewers/s": rounded(percentile(ours, 50), 0),
        "drain alone/s": rounded(percentile(alone, 50), 0),
        "ratio to alone": ratio,
      },
      targets: () => [atLeast("ratio to alone", ratio, DRAIN_RATIO)],
    }),
  );
}

interface Operation {
  readonly operation: { readonly id: string; readonly state: string; readonly changed: number };
}

/** From the request to the end of the operation. The relay goes on and publishes them. */
async function measureBulk(context: BenchContext, console: AskedConsole): Promise<void> {
  const { database, options } = context;
  const first = 3 * FIRST_PUBLISHED;
  const count = options.quick ? 1_000 : RETRIED;
  await database.load({ kind: "failed", count, first, topic: "retried" });
  context.progress("bulk");
  const planned = await console.post("/s/main/previews", { kind: "retry", filter: { topic: "retried" } });
  const { id } = (planned.json as unknown as Operation).operation;
  const began = performance.now();
  await console.post("/s/main/operations", { preview: id, reason: "measured" });
  for (;;) {
    const { operation } = (await console.get(`/s/main/operations/${id}`)).json as unknown as Operation;
    if (operation.state === "done" && operation.changed === count) break;
    if (operation.state !== "running")
      throw new Error(`the operation is ${operation.state}, ${operation.changed} of ${count} were changed`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const rate = rounded((count / (performance.now() - began)) * 1000, 0);
  context.report(
    resultOf({
      scenario: "console-reads",
      database,
      variant: "bulk",
      ours: [],
      figures: { "preview ms": rounded(planned.ms, 0), "retried/s": rate },
      targets: () => [atLeast("retried/s", rate, RETRIED_PER_SECOND)],
    }),
  );
}

/**
 * The queries of DotNetCore.CAP's dashboard with its storage for MySQL and PostgreSQL: five counts
 * every two seconds, and a count with each page. We have one table, so it is counted twice.
 */
async function measureCap(context: BenchContext): Promise<void> {
  const connection = await context.database.connect("program");
  const count = (state: number): string => `(SELECT COUNT(id) FROM local_message WHERE state = ${state})`;
  const counts = `SELECT ${count(2)} AS a, ${count(3)} AS b, ${count(0)} AS c, ${count(2)} AS d, ${count(3)} AS e`;
  const page = "SELECT * FROM local_message WHERE state = 2 ORDER BY gmt_create DESC LIMIT 20 OFFSET 0";
  const pageCount = "SELECT COUNT(1) AS n FROM local_message WHERE state = 2";
  try {
    for (const [name, texts] of [
      ["cap-counts", [counts]],
      ["cap-page", [pageCount, page]],
    ] as const) {
      context.progress(name);
      const times: number[] = [];
      for (let run = 0; run < context.options.runs; run += 1) {
        const began = performance.now();
        for (const text of texts) await connection.run({ name, text, params: [] });
        times.push(performance.now() - began);
      }
      reportTimes(context, name, times, null);
    }
  } finally {
    await connection.close();
  }
}
