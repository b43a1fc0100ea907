/**
 * Drain rates into the instant broker: with and without the mark 发送中, with a table full of rows
 * that are not due, and with two relay processes.
 */
import { type Measurement, rateOf, startMeter } from "../measure/meter.ts";
import { type ProfileRun, startProfile } from "../measure/profile.ts";
import { median, rounded } from "../measure/statistics.ts";
import { checkDrained, prepareRawDrain, type RawDrain, runOverlappedRawDrain, runRawDrain } from "../raw/drain.ts";
import { runFloor } from "../raw/floor.ts";
import { measureDrain } from "../relay/in-process.ts";
import { measureRelayProcesses } from "../relay/processes.ts";
import { atLeast, atMost, ratioOfRuns, resultOf, type Target } from "../results/result.ts";
import type { BenchDatabase, RowKind } from "../servers/server.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

const SCENARIO = "outbox-drain";
const MESSAGES = 50_000;
const WARM_UP = 5_000;
/** The relay's default. */
const BATCH = 500;
const STATEMENTS_PER_MESSAGE = 0.012;
const DRAINS: Readonly<Record<string, Drain>> = {
  on: { name: "sendingMark on", sendingMark: "on", onSent: "keep", toFloor: 0.5 },
  off: { name: "sendingMark off", sendingMark: "off", onSent: "keep" },
  delete: { name: "delete at settle", sendingMark: "on", onSent: "delete" },
  "delete-off": { name: "delete at settle, sendingMark off", sendingMark: "off", onSent: "delete", toFloor: 0.7 },
};
/**
 * Two relays on two processors that the database needs too share the capacity of one, so that rate
 * is for information. A second relay helps if a broker keeps each of them waiting.
 */
const TWO_RELAYS: Readonly<Record<string, TwoRelays>> = {
  "two-relays": { name: "two relay processes" },
  "two-relays-throttled": {
    name: "two relay processes, 2,000 messages a second through each",
    messagesPerSecond: 2_000,
    share: 0.2,
    toOne: 1.8,
  },
};

interface TwoRelays {
  readonly name: string;
  readonly messagesPerSecond?: number;
  /** Share of the other drains' messages. */
  readonly share?: number;
  /** Least rate as a multiple of one relay's; absent: for information. */
  readonly toOne?: number;
}

interface Drain {
  readonly name: string;
  readonly sendingMark: "on" | "off";
  readonly onSent: "keep" | "delete";
  /** Least share of the floor's rate; absent: for information. */
  readonly toFloor?: number;
}

/** Rows beside the waiting ones, as multiples of them: 1,000,000 and 100,000 for 50,000. */
const BESIDE: Readonly<Record<string, { readonly kind: RowKind; readonly times: number }>> = {
  finished: { kind: "finished", times: 20 },
  delayed: { kind: "delayed", times: 2 },
  failed: { kind: "failed", times: 2 },
};

export const outboxDrain: Scenario = {
  variants: [...Object.keys(DRAINS), ...Object.keys(BESIDE), ...Object.keys(TWO_RELAYS)],
  measure: measureAll,
};

async function measureAll(context: BenchContext): Promise<void> {
  const messages = context.options.messages ?? MESSAGES;
  for (const [variant, drain] of Object.entries(DRAINS)) {
    // Refused on SQLite, where it is slower than the mark.
    if (drain.sendingMark === "off" && context.database.product === "sqlite") continue;
    if (wanted(context, variant)) await drainBesideRaw(context, messages, drain);
  }
  const beside = Object.keys(BESIDE).filter((variant) => wanted(context, variant));
  if (beside.length > 0) await drainBesideRows(context, messages, beside);
  for (const [variant, how] of Object.entries(TWO_RELAYS)) {
    // SQLite has one shard, held by one of them.
    if (how.toOne !== undefined && context.database.product === "sqlite") continue;
    if (wanted(context, variant)) await drainByTwo(context, Math.ceil(messages * (how.share ?? 1)), how);
  }
}

async function drainBesideRaw(context: BenchContext, messages: number, drain: Drain): Promise<void> {
  const { database, options } = context;
  const spent: RawDrain["spentMs"][] = [];
  const floors: Measurement[] = [];
  context.progress(`${drain.name}: warm-up`);
  await rawRun(context, Math.min(WARM_UP, messages), drain, "sequential", []);
  await ourRun(database, Math.min(WARM_UP, messages), drain);
  const { raw, ours } = await inTurn(
    options.runs,
    async (run) => {
      context.progress(`${drain.name}: floor and raw ${run + 1} of ${options.runs}`);
      floors.push(await floorRun(database, messages, drain));
      return await rawRun(context, messages, drain, "sequential", spent);
    },
    (run) => {
      context.progress(`${drain.name}: ours ${run + 1} of ${options.runs}`);
      return ourRun(database, messages, drain);
    },
  );
  const overlapped = await rawRun(context, messages, drain, "overlapped", []);
  context.progress(`${drain.name}: beside the profiler`);
  const profile = await startProfile();
  await ourRun(database, messages, drain, profile);
  const mainThread = await profile.shares();
  const ratioToFloor = rounded(ratioOfRuns(ours, floors), 3);
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: drain.name,
      ours,
      raw,
      figures: {
        ...meanOf(spent),
        "overlapped raw msg/s": rounded(rateOf(overlapped), 0),
        "floor msg/s": rounded(median(floors.map(rateOf)), 0),
        ratioToFloor,
        rawToFloor: rounded(ratioOfRuns(raw, floors), 3),
        "main thread %": mainThread,
      },
      targets: (result): Target[] => [
        atLeast("ratioToRaw", result.ratioToRaw, 0.85),
        atMost("statementsPerMessage", result.statementsPerMessage, STATEMENTS_PER_MESSAGE),
        ...(drain.toFloor === undefined ? [] : [atLeast("ratioToFloor", ratioToFloor, drain.toFloor)]),
      ],
    }),
  );
}

async function rawRun(
  { database, statements }: BenchContext,
  messages: number,
  { sendingMark, onSent }: Drain,
  how: "sequential" | "overlapped",
  spent: RawDrain["spentMs"][],
): Promise<Measurement> {
  await fill(database, messages);
  const connection = await database.connect("relay");
  const second = await database.connect("relay");
  try {
    const drain = await prepareRawDrain({ connection, statements, batchSize: BATCH, sendingMark, onSent });
    if (drain.messages !== messages) throw new Error(`${drain.messages} rows wait instead of ${messages}`);
    const meter = await startMeter(database);
    meter.restart();
    if (how === "sequential") await runRawDrain(connection, drain);
    else await runOverlappedRawDrain([connection, second], drain);
    const measured = await meter.stop(messages);
    await drain.release();
    await checkDrained(database);
    spent.push(drain.spentMs);
    return measured;
  } finally {
    await connection.close();
    await second.close();
  }
}

async function floorRun(database: BenchDatabase, messages: number, { onSent }: Drain): Promise<Measurement> {
  await fill(database, messages);
  const connection = await database.connect("relay");
  try {
    const meter = await startMeter(database);
    meter.restart();
    await runFloor(connection, database.product, { messages, batchSize: BATCH, onSent });
    const measured = await meter.stop(messages);
    await checkDrained(database);
    return measured;
  } finally {
    await connection.close();
  }
}

async function ourRun(
  database: BenchDatabase,
  messages: number,
  { sendingMark, onSent }: Pick<Drain, "sendingMark" | "onSent">,
  profile?: ProfileRun,
): Promise<Measurement> {
  await fill(database, messages);
  return await measureDrain({ database, messages, sendingMark, onSent, profile });
}

async function fill(database: BenchDatabase, messages: number): Promise<void> {
  await database.clear();
  await database.load({ kind: "waiting", count: messages, first: 1 });
  await database.tidy();
}

interface Crowded {
  readonly variant: string;
  readonly runs: Measurement[];
  readonly run: (messages: number) => Promise<Measurement>;
  drop(): Promise<void>;
}

/**
 * Rows that are not due must not slow down the others: compares the rate beside them with that of a
 * table without them, in turn.
 */
async function drainBesideRows(context: BenchContext, messages: number, variants: readonly string[]): Promise<void> {
  const { runs } = context.options;
  const tables: Crowded[] = [];
  for (const variant of variants) tables.push(await crowdedTable(context, messages, variant));
  for (const { run } of tables) await run(Math.min(WARM_UP, messages));
  const plain: Measurement[] = [];
  for (let number = 1; number <= runs; number += 1) {
    context.progress(`without other rows: run ${number} of ${runs}`);
    plain.push(await ourRun(context.database, messages, { sendingMark: "on", onSent: "keep" }));
    for (const table of tables) {
      context.progress(`${table.variant}: run ${number} of ${runs}`);
      table.runs.push(await table.run(messages));
    }
  }
  for (const table of tables) {
    await table.drop();
    const ratio = rounded(ratioOfRuns(table.runs, plain), 3);
    context.report(
      resultOf({
        scenario: SCENARIO,
        database: context.database,
        variant: table.variant,
        ours: table.runs,
        figures: { "without them msg/s": rounded(median(plain.map(rateOf)), 0), ratioToPlain: ratio },
        targets: () => [atLeast("ratioToPlain", ratio, 0.9)],
      }),
    );
  }
}

async function crowdedTable(context: BenchContext, messages: number, variant: string): Promise<Crowded> {
  const beside = BESIDE[variant];
  if (beside === undefined) throw new Error(`no rows of the kind ${variant} can be loaded`);
  const rows = messages * beside.times;
  const database = await context.another();
  context.progress(`loading ${rows} ${beside.kind} rows`);
  await database.load({ kind: beside.kind, count: rows, first: 100_000_000 });
  let first = 1;
  return {
    variant: `beside ${rows.toLocaleString("en-US")} ${beside.kind} rows`,
    runs: [],
    async run(count) {
      await database.load({ kind: "waiting", count, first });
      first += count;
      await database.tidy();
      return await measureDrain({ database, messages: count, sendingMark: "on" });
    },
    drop: () => database.drop(),
  };
}

/**
 * Two processes against one, both measured from the commit of all rows to the last outcome in the
 * table.
 */
async function drainByTwo(context: BenchContext, messages: number, how: TwoRelays): Promise<void> {
  const { database, options } = context;
  const { messagesPerSecond, name, toOne } = how;
  const run = (relays: number) => measureRelayProcesses({ database, relays, messages, messagesPerSecond });
  const { raw: one, ours: two } = await inTurn(
    options.runs,
    (number) => {
      context.progress(`${name}: one ${number + 1} of ${options.runs}`);
      return run(1);
    },
    (number) => {
      context.progress(`${name}: two ${number + 1} of ${options.runs}`);
      return run(2);
    },
  );
  const ratio = rounded(ratioOfRuns(two, one), 3);
  const duplicates = two.reduce((sum, { duplicates: count }) => sum + count, 0);
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: name,
      ours: two,
      figures: {
        "one process msg/s": rounded(median(one.map(rateOf)), 0),
        ratioToOne: ratio,
        duplicates,
        shards: two[0]?.shards ?? null,
        published: two[0]?.shares ?? null,
      },
      targets: () => [
        ...(toOne === undefined ? [] : [atLeast("ratioToOne", ratio, toOne)]),
        atMost("duplicates", duplicates, 0),
      ],
    }),
  );
}

function meanOf(spent: readonly RawDrain["spentMs"][]): Record<string, number | null> {
  const each = (name: keyof RawDrain["spentMs"]): number | null => rounded(median(spent.map((run) => run[name])), 0);
  return { "raw scans ms": each("scan"), "raw claims ms": each("claim"), "raw settles ms": each("settle") };
}
