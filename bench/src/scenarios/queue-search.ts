/**
 * A topic with 5,000,000 messages in twelve months: a lookup by key, in every month and in one, and
 * a rewind of a group.
 */
import type { Queue, RewindOptions } from "rowpost/queue";
import { percentile, rounded } from "../measure/statistics.ts";
import { type OpenedQueue, openQueue, TOPIC } from "../queue/topic.ts";
import { atMost, resultOf } from "../results/result.ts";
import { loadRewinding } from "../rowpost.ts";
import type { BenchDatabase } from "../servers/server.ts";
import type { BenchContext, Scenario } from "./scenario.ts";

const SCENARIO = "queue-search";
const MESSAGES = 5_000_000;
const MONTHS = 12;
const LOADED_AT_ONCE = 50_000;
const SEARCHES = 200;
const SEARCH_MS = 50;
const REWINDS = 20;
const BACK = 1_000_000;
const REWIND_MS = 100;
/** Difference of ids a millisecond apart. */
const ID_STEP = 4_194_304n;
const EPOCH_MS = Date.UTC(2020, 0, 1);

export const queueSearch: Scenario = { variants: [], measure };

async function measure(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const messages = options.messages ?? MESSAGES;
  const perMonth = Math.floor(messages / MONTHS);
  const months = monthsBefore(new Date(), MONTHS);
  const opened = await openQueue(database, 2);
  try {
    await fillMonths(context, opened, months, perMonth);
    await searches(context, opened.queue, { months, perMonth, title: "a key, in every month" });
    const from = new Date(Date.UTC(Math.floor((months[6] ?? 0) / 100), ((months[6] ?? 0) % 100) - 1, 1));
    const to = new Date(from.getTime() + 28 * 86_400_000);
    await searches(context, opened.queue, { months, perMonth, title: "a key, within four weeks", range: { from, to } });
    await rewinds(context, opened.queue, `${Math.min(BACK, messages).toLocaleString("en-US")} messages back`, {
      back: Math.min(BACK, messages),
    });
    await rewinds(context, opened.queue, "to an instant half a year ago", { time: from });
  } finally {
    await opened.close();
  }
}

/** The last full months, such as 202610, the oldest first. */
function monthsBefore(now: Date, count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const date = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count + index, 1));
    return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
  });
}

const keyOf = (month: number, number: number): string => `order-${month}-${number}`;

/** As if appended then, one in each millisecond; and one now, after all of them. */
async function fillMonths(
  context: BenchContext,
  { database: rowpost, queue }: OpenedQueue,
  months: readonly number[],
  perMonth: number,
): Promise<void> {
  const { database } = context;
  const store = rowpost.queue.store();
  await store.topics.makeMonths(TOPIC, months);
  await allowRecursion(database);
  for (const month of months) {
    context.progress(`loading ${perMonth} messages of ${month}`);
    for (let first = 0; first < perMonth; first += LOADED_AT_ONCE)
      await database.script(insertOf(database, month, first, Math.min(first + LOADED_AT_ONCE, perMonth)));
    const table = `${TOPIC}_message_info_${month}`;
    if (database.product === "postgres") await database.script(`VACUUM ANALYZE ${table}`);
    else if (database.product !== "sqlite") await database.script(`ANALYZE TABLE ${table}`);
  }
  await queue.append({ topic: TOPIC, key: "the last one", body: 1 });
  // As running consumers would have done meanwhile.
  const rewinding = await loadRewinding(rowpost);
  const began = performance.now();
  await rewinding.setMilestones({ topic: TOPIC, fromMonth: 0, isOver: () => false });
  context.progress(`milestones set in ${Math.round(performance.now() - began)} ms`);
  await rewinding.close();
  await store.close();
}

async function allowRecursion(database: BenchDatabase): Promise<void> {
  const name = { mariadb: "max_recursive_iterations", mysql: "cte_max_recursion_depth" };
  if (database.product === "mariadb" || database.product === "mysql")
    await database.script(`SET SESSION ${name[database.product]} = 1000000`);
}

/** Messages of a month by number: from `first` up to, but not including, the last. */
function insertOf({ product }: BenchDatabase, month: number, first: number, last: number): string {
  const start = BigInt(Date.UTC(Math.floor(month / 100), (month % 100) - 1, 1) - EPOCH_MS) * ID_STEP;
  const isMysql = product === "mariadb" || product === "mysql";
  const key = isMysql ? `CONCAT('order-${month}-', n)` : `'order-${month}-' || n`;
  const body = `'{"note":"${"x".repeat(386)}"}'`;
  return `INSERT INTO ${TOPIC}_message_info_${month} (partition_no, message_id, message_key, message_type, message_data)
WITH RECURSIVE numbers (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${last - 1})
SELECT 0, ${start} + ${product === "postgres" ? "n::bigint" : "n"} * ${ID_STEP}, ${key}, 'order.created', ${body} FROM numbers`;
}

async function searches(
  context: BenchContext,
  queue: Queue,
  {
    months,
    perMonth,
    range = {},
    title,
  }: {
    readonly months: readonly number[];
    readonly perMonth: number;
    readonly title: string;
    readonly range?: { readonly from?: Date; readonly to?: Date };
  },
): Promise<void> {
  context.progress(title);
  const times: number[] = [];
  for (let search = 0; search < SEARCHES; search += 1) {
    const month = range.from === undefined ? (months[search % months.length] ?? 0) : (months[6] ?? 0);
    // A step that shares no factor with the count covers the whole month.
    const key = keyOf(month, (search * 7_919) % perMonth);
    const began = performance.now();
    const found = await queue.search({ topic: TOPIC, key, ...range });
    times.push(performance.now() - began);
    if (found.messages.length !== 1 || !found.complete) throw new Error(`${key} was not found`);
  }
  report(context, title, times, SEARCH_MS);
}

async function rewinds(context: BenchContext, queue: Queue, title: string, to: RewindOptions["to"]): Promise<void> {
  context.progress(title);
  const group = { topic: TOPIC, group: `group ${title}`.replaceAll(/\W/g, "_").slice(0, 40) };
  const member = await queue.consume({ ...group, from: "end", handler: () => undefined });
  await member.stop();
  const times: number[] = [];
  for (let run = 0; run < REWINDS; run += 1) {
    const began = performance.now();
    await queue.rewind({ ...group, to, author: "bench", reason: "measured" });
    times.push(performance.now() - began);
    await queue.rewind({ ...group, to: "end", author: "bench", reason: "back" });
  }
  report(context, title, times, REWIND_MS);
}

function report(context: BenchContext, variant: string, times: readonly number[], limitMs: number): void {
  const p99Ms = percentile(times, 99) ?? null;
  context.report(
    resultOf({
      scenario: SCENARIO,
      database: context.database,
      variant,
      ours: [],
      p50Ms: percentile(times, 50) ?? null,
      p99Ms,
      figures: { times: times.length },
      targets: () => [atMost("p99Ms", rounded(p99Ms, 2), limitMs)],
    }),
  );
}
