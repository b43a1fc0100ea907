/**
 * Kills or stops a relay while messages come in: how long its share waits until another process
 * publishes it, and which messages the broker got twice, not at all or out of order.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createOutbox, type Outbox } from "rowpost";
import { medianOrNull, percentile, rounded } from "../measure/statistics.ts";
import { followLedger, type Ledger, type LedgerLine } from "../relay/ledger.ts";
import { machineMs } from "../relay/messages.ts";
import { type RelayProcess, startRelayProcess, untilShared } from "../relay/processes.ts";
import { atMost, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import { orderMessage } from "./business.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const RATE = 100;
/** Enough for each relay to have some, with a message of each key three times a second. */
const KEYS = 32;
/** Spreads the signals over the interval at which relays look at the locks of others. */
const SPREAD_MS = 500;
/** Beyond the lease, the last resort. */
const LIMIT_MS = 60_000;

interface Plan {
  readonly signal: "SIGKILL" | "SIGTERM";
  /** A second relay already runs; otherwise one is started when the process has ended. */
  readonly beside: boolean;
}

const PLANS: Readonly<Record<string, Plan>> = {
  "kill-alone": { signal: "SIGKILL", beside: false },
  "kill-beside": { signal: "SIGKILL", beside: true },
  "stop-beside": { signal: "SIGTERM", beside: true },
};

export const relayTakeover: Scenario = { variants: Object.keys(PLANS), measure: measureTakeovers };

async function measureTakeovers(context: BenchContext): Promise<void> {
  const { database, options } = context;
  for (const [variant, plan] of Object.entries(PLANS)) {
    if (!wanted(context, variant)) continue;
    await database.clear();
    const { rounds, offered, lines } = await runTakeovers(context, variant, plan);
    const takeoversMs = rounds.map(({ publishedMs }) => publishedMs);
    const { duplicates, lost, reordered } = judge(lines, offered);
    const line = resultOf({
      scenario: "relay-takeover",
      database,
      variant,
      ours: [],
      p50Ms: percentile(takeoversMs, 50) ?? null,
      p99Ms: percentile(takeoversMs, 99) ?? null,
      figures: {
        "max ms": rounded(Math.max(...takeoversMs), 0),
        ...(plan.beside ? {} : { "started ms": rounded(medianOrNull(rounds.map(({ startedMs }) => startedMs)), 0) }),
        rounds: options.rounds,
        duplicates,
        lost,
        reordered,
        "load average": rounded(loadavg()[0], 1),
      },
      targets: () => [
        atMost("lost", lost, 0),
        atMost("reordered", reordered, 0),
        // Only a kill may leave a batch between the broker and the table.
        ...(plan.signal === "SIGTERM" ? [atMost("duplicates", duplicates, 0)] : []),
      ],
    });
    context.report({ ...line, messages: offered, runs: 1 });
  }
}

/** One round, in milliseconds from the signal. */
interface Takeover {
  /** To the next publish by another process. */
  readonly publishedMs: number;
  /** Until the replacement has started; null with a second relay. */
  readonly startedMs: number | null;
}

interface Takeovers {
  readonly rounds: readonly Takeover[];
  /** Committed messages; their numbers begin at 0. */
  readonly offered: number;
  readonly lines: readonly LedgerLine[];
}

async function runTakeovers(context: BenchContext, variant: string, plan: Plan): Promise<Takeovers> {
  const { database, options } = context;
  const folder = mkdtempSync(join(tmpdir(), "rowpost_takeover_"));
  const file = join(folder, "ledger");
  const ledger = followLedger(file);
  const rowpost = await openRowpost(database.url, 8);
  const relays: RelayProcess[] = [];
  const start = async (): Promise<void> => {
    const order = { url: database.url, sendingMark: "on", label: "bench", record: false, ledger: file } as const;
    relays.push(await startRelayProcess(order));
  };
  const flow = startFlow(createOutbox({ database: rowpost.database }));
  try {
    await start();
    if (plan.beside) await start();
    const rounds: Takeover[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      await untilShared(database, relays.length);
      const takeover = await takeOver(ledger, relays, plan, start);
      context.progress(`${variant}, round ${round} of ${options.rounds}: ${takeover.publishedMs.toFixed(0)} ms`);
      rounds.push(takeover);
    }
    const offered = await flow.stop();
    const all = (): boolean => new Set(ledger.read().map(({ number }) => number)).size >= offered;
    // Messages missing by then count as lost.
    await until(all).catch(() => {});
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    return { rounds, offered, lines: ledger.read() };
  } finally {
    await flow.stop();
    await Promise.all(relays.map((relay) => relay.stop()));
    await rowpost.close();
    ledger.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One round: ends the oldest publishing relay and starts another in its place. */
async function takeOver(
  ledger: Ledger,
  relays: RelayProcess[],
  plan: Plan,
  start: () => Promise<void>,
): Promise<Takeover> {
  await untilEachKey(ledger);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * SPREAD_MS));
  const owners = new Map(ledger.read().map(({ number, pid }) => [number % KEYS, pid]));
  // SQLite has one shard: of two relays only one publishes, and not always the older one.
  const publishing = new Set(owners.values());
  const place = relays.findIndex(({ pid }) => publishing.has(pid));
  const [ending] = relays.splice(place, place === -1 ? 0 : 1);
  if (ending === undefined) throw new Error("none of the relays publishes");
  const before = ledger.read().length;
  const isNext = ({ number, pid }: LedgerLine): boolean =>
    pid !== ending.pid && owners.get(number % KEYS) === ending.pid;
  const signalMs = machineMs();
  const ended = ending.end(plan.signal);
  let startedMs: number | null = null;
  if (!plan.beside) {
    await ended;
    await start();
    startedMs = machineMs() - signalMs;
  }
  const next = await until(() => ledger.read().slice(before).find(isNext));
  await ended;
  if (plan.beside) await start();
  return { publishedMs: next.atMs - signalMs, startedMs };
}

/** Until each key has a new message: the last line of a key shows its owner. */
async function untilEachKey(ledger: Ledger): Promise<void> {
  const before = ledger.read().length;
  const keys = (): Set<number> =>
    new Set(
      ledger
        .read()
        .slice(before)
        .map(({ number }) => number % KEYS),
    );
  await until(() => keys().size === KEYS);
}

async function until<T>(look: () => T | undefined | false): Promise<T> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`nothing was published within ${LIMIT_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Messages at a steady rate, whether or not the last transaction has ended; those of one key wait
 * for each other, so that their numbers follow the commits. `stop` returns their count.
 */
function startFlow(outbox: Outbox): { stop(): Promise<number> } {
  const last = new Map<number, Promise<void>>();
  const startMs = performance.now();
  let offered = 0;
  const enqueue = async (number: number, previous: Promise<void> | undefined): Promise<void> => {
    await previous;
    const message = { ...orderMessage(number), orderingKey: `k${number % KEYS}` };
    await outbox.transaction(async (tx) => void (await outbox.enqueue(tx, message)));
  };
  const timer = setInterval(() => {
    for (; offered * (1000 / RATE) < performance.now() - startMs; offered += 1) {
      last.set(offered % KEYS, enqueue(offered, last.get(offered % KEYS)));
    }
  }, 1000 / RATE);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(last.values());
      return offered;
    },
  };
}

/** From the ledger: duplicates, messages without a line, first copies out of order. */
function judge(lines: readonly LedgerLine[], offered: number) {
  const seen = new Set<number>();
  const highest = new Map<number, number>();
  let reordered = 0;
  for (const { number } of lines) {
    if (seen.has(number)) continue;
    seen.add(number);
    const key = number % KEYS;
    const before = highest.get(key) ?? -1;
    if (number < before) reordered += 1;
    highest.set(key, Math.max(before, number));
  }
  return { duplicates: lines.length - seen.size, lost: offered - seen.size, reordered };
}
