/**
 * Reads of `rowpost status` and `rowpost list` on a big table, each with its budget. 2,000,000 rows
 * a second apart, one in 400 of them failed.
 */
import type { MessageAdmin } from "rowpost/admin";
import { median, rounded } from "../measure/statistics.ts";
import { atMost, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import { HISTORY_ROWS } from "../servers/server.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const BUDGET_MS = 50;
/** Reads of one run; the very first one warms the caches up. */
const READS = 20;

interface Read {
  readonly name: string;
  readonly read: (admin: MessageAdmin, rows: number) => Promise<unknown>;
}

/** Row n from the end is n seconds old. */
const secondsAgo = (seconds: number): string => new Date(Date.now() - seconds * 1_000).toISOString();

const READ_VARIANTS: readonly Read[] = [
  { name: "key", read: (admin, rows) => admin.list({ filter: { key: keyOf(rows / 2) }, limit: 50 }) },
  { name: "no-such-key", read: (admin) => admin.list({ filter: { key: "nobody's" }, limit: 50 }) },
  { name: "status", read: (admin) => admin.status() },
  {
    name: "time-window",
    read: (admin, rows) =>
      admin.list({
        filter: { createdAfter: secondsAgo(rows / 2), createdBefore: secondsAgo(rows / 2 - 3_600) },
        limit: 50,
      }),
  },
  { name: "failed", read: (admin) => admin.list({ filter: { states: ["failed"] }, limit: 50 }) },
  {
    name: "reason-step",
    read: (admin) => admin.list({ filter: { failReasonContains: "no such text" }, limit: 50, timeLimitMs: 0 }),
  },
  { name: "newest", read: (admin) => admin.list({ filter: {}, limit: 50 }) },
];

export const adminReads: Scenario = { variants: READ_VARIANTS.map(({ name }) => name), measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const rows = options.messages ?? HISTORY_ROWS;
  context.progress(`loading ${rows} rows`);
  await database.load({ kind: "history", count: rows, first: 1 });
  await database.tidy();
  const opened = await openRowpost(database.url);
  const admin = opened.database.messageAdmin({ layout: opened.database.defaultLayout });
  try {
    for (const variant of READ_VARIANTS)
      if (wanted(context, variant.name)) await measureRead(context, admin, variant, rows);
  } finally {
    await admin.close();
    await opened.close();
  }
}

async function measureRead(
  context: BenchContext,
  admin: MessageAdmin,
  { name, read }: Read,
  rows: number,
): Promise<void> {
  context.progress(name);
  const firstMs = await timed(() => read(admin, rows));
  const times: number[] = [];
  for (let count = 0; count < READS * context.options.runs; count += 1)
    times.push(await timed(() => read(admin, rows)));
  times.sort((left, right) => left - right);
  const p99Ms = times.at(Math.ceil(times.length * 0.99) - 1) ?? null;
  context.report(
    resultOf({
      scenario: "admin-reads",
      database: context.database,
      variant: name,
      ours: [],
      p50Ms: median(times) ?? null,
      p99Ms,
      figures: { rows, firstMs: rounded(firstMs, 1) },
      targets: (result) => [atMost("p50Ms", result.p50Ms, BUDGET_MS)],
    }),
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function keyOf(number: number): string {
  return `m${String(Math.trunc(number)).padStart(9, "0")}`;
}
