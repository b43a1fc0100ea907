import { ConfigurationError } from "../../runtime/errors.ts";
import { comparableSince, compareSlice } from "./business-rows.ts";
import { compareEffects, compareInbox, type InboxResult } from "./consumers.ts";
import { FINDING_KINDS, type Finding, type FindingKind } from "./finding.ts";
import { type ReconcileOptions, type ReconcileProgress, type Settings, settingsOf } from "./options.ts";
import { inSlices } from "./slices.ts";
import type { ReconcileStore, UnknownConfirmation, UserQuery, Window } from "./store.ts";

/** Result of {@link reconcile}. */
export interface ReconcileReport {
  /** Start of the window, ISO 8601, UTC. */
  readonly from: string;
  /** End of the window, exclusive. */
  readonly to: string;
  /** Findings of each kind. */
  readonly counts: Readonly<Record<FindingKind, number>>;
  /** Total of findings. */
  readonly findings: number;
  /** What was examined. */
  readonly looked: ReconcileProgress;
  /**
   * False: something could not be decided, as listed in `notes`. True: nothing but the findings is
   * wrong, within the request.
   */
  readonly complete: boolean;
  /** What could not be decided or was skipped, in plain words. */
  readonly notes: readonly string[];
}

const DAY_MS = 86_400_000;
/** As many as are stored. */
const MOST_UNKNOWN = 10_000;

/**
 * Compares business rows, messages and the work of consumers, and reports mismatches: for cron, and
 * after an incident. Locks and writes nothing.
 *
 * Business rows and messages are read in one snapshot of the database: a transaction that commits
 * meanwhile is seen with both or neither. Archived messages count. The window is read in parts that
 * fit into memory.
 *
 * Throws `ConfigurationError` (an option, or a query that cannot run), `SchemaError` and
 * `PermissionError` (a table), `DatabaseUnavailableError`, and errors of `onFinding`. Earlier
 * findings were already reported then.
 */
export async function reconcile(options: ReconcileOptions): Promise<ReconcileReport> {
  const settings = settingsOf(options);
  const store = settings.database.reconcileStore({ layout: settings.layout });
  try {
    const query = queryOf(settings);
    const isWindowed = query !== undefined && store.isWindowed(query.text);
    const { nowMs, sinceMs } = await store.view(async (view) => {
      const now = await view.clock();
      return { nowMs: now, sinceMs: await comparableSince(view, settings, now) };
    });
    const window = windowOf(settings, nowMs);
    const run = createRun(settings, window, isWindowed);
    // At the limit of retention.
    const cutMs = isWindowed ? Math.min(Math.max(sinceMs, window.fromMs), window.toMs) : window.fromMs;
    for (const part of [
      { ...window, toMs: cutMs },
      { ...window, fromMs: cutMs },
    ]) {
      await inSlices(part, async (slice, mayFail) => {
        const isFirst = slice.fromMs === window.fromMs;
        const result = await store.view((view) =>
          compareSlice(view, { settings, query, isWindowed, isFirst, slice, nowMs, mayFail }),
        );
        run.looked.businessRows += result.businessRows;
        run.looked.messages += result.messages;
        run.passed.undecided += result.undecided;
        run.passed.withoutKey += result.withoutKey;
        await run.tell(result.findings);
      });
    }
    await compareConsumers(store, run, nowMs);
    run.unknown(await unknownConfirmations(store, settings, window));
    return run.report(sinceMs);
  } finally {
    await store.close();
  }
}

function queryOf({ businessQuery, timeZone, types }: Settings): UserQuery | undefined {
  if (businessQuery === undefined) return undefined;
  return { text: businessQuery, type: types?.length === 1 ? types[0] : undefined, timeZone };
}

function windowOf({ from, slackMs, to }: Settings, nowMs: number): Window {
  const toMs = to?.getTime() ?? nowMs - slackMs;
  const fromMs = from?.getTime() ?? toMs - DAY_MS;
  if (fromMs < toMs) return { fromMs, toMs };
  throw new ConfigurationError(
    `reconcile: the window begins at ${new Date(fromMs).toISOString()} and ends at ${new Date(toMs).toISOString()}; it must begin before it ends`,
  );
}

type Run = ReturnType<typeof createRun>;

function createRun(settings: Settings, window: Window, isWindowed: boolean) {
  const counts = Object.fromEntries(FINDING_KINDS.map((kind) => [kind, 0])) as Record<FindingKind, number>;
  const looked = { businessRows: 0, messages: 0, handlings: 0 };
  const passed = { undecided: 0, withoutKey: 0 };
  let inbox: InboxResult | undefined;
  let moreEffects = false;
  let unknown: readonly UnknownConfirmation[] = [];
  return {
    settings,
    window,
    looked,
    passed,

    /** After the transaction: the listener may use the same database. */
    async tell(findings: readonly Finding[]): Promise<void> {
      for (const finding of findings) {
        counts[finding.kind] += 1;
        await settings.onFinding(finding);
      }
      settings.onProgress?.({ ...looked });
    },

    ofConsumers(result: InboxResult | undefined, more: boolean): void {
      inbox = result;
      moreEffects = more;
    },

    unknown(confirmations: readonly UnknownConfirmation[]): void {
      unknown = confirmations;
    },

    report(sinceMs: number): ReconcileReport {
      const gaps = gapsOf(settings, {
        isWindowed,
        looked,
        moreEffects,
        sinceMs,
        rows: passed.undecided,
        handlings: inbox?.undecided ?? 0,
      });
      return {
        from: new Date(window.fromMs).toISOString(),
        to: new Date(window.toMs).toISOString(),
        counts: { ...counts },
        findings: Object.values(counts).reduce((sum, count) => sum + count, 0),
        looked: { ...looked },
        complete: gaps.length === 0,
        notes: [...gaps, ...passedOver(settings, passed.withoutKey, inbox), ...unknownNote(unknown)],
      };
    },
  };
}

async function compareConsumers(store: ReconcileStore, run: Run, nowMs: number): Promise<void> {
  const { looked, settings, window } = run;
  const { inbox } = settings;
  const tell = (findings: readonly Finding[]): Promise<void> => run.tell(findings);
  const result =
    inbox === undefined
      ? undefined
      : await compareInbox(store, {
          settings,
          inbox,
          window,
          nowMs,
          tell: async (findings, handlings) => {
            looked.handlings += handlings;
            await tell(findings);
          },
        });
  run.ofConsumers(result, await compareEffects(settings, window, tell));
}

/** No finding: deleted messages and another producer's get confirmed too. */
async function unknownConfirmations(
  store: ReconcileStore,
  { types }: Settings,
  { fromMs, toMs }: Window,
): Promise<readonly UnknownConfirmation[]> {
  const all = await store.view((view) => view.unknownConfirmations(MOST_UNKNOWN));
  return all.filter(
    ({ firstAt, lastAt, type }) =>
      types?.includes(type) !== false && Date.parse(lastAt) >= fromMs && Date.parse(firstAt) < toMs,
  );
}

function unknownNote(unknown: readonly UnknownConfirmation[]): string[] {
  if (unknown.length === 0) return [];
  const there = unknown.filter(({ isThere }) => isThere).length;
  const now = there === 0 ? "" : ` (${there} of these messages are there now)`;
  return [
    `${unknown.length} confirmations were of messages that were not there${now}: rowpost confirm --unknown lists them`,
  ];
}

interface Gaps {
  readonly sinceMs: number;
  readonly rows: number;
  readonly handlings: number;
  readonly moreEffects: boolean;
  readonly isWindowed: boolean;
  readonly looked: ReconcileProgress;
}

/** What could not be decided. */
function gapsOf(
  { keptForMs, slackMs }: Settings,
  { handlings, isWindowed, looked, moreEffects, rows, sinceMs }: Gaps,
): string[] {
  const known = Number.isFinite(sinceMs);
  const since = known ? new Date(sinceMs - slackMs).toISOString() : "";
  const kept =
    keptForMs === undefined
      ? known
        ? `the oldest message that is there was finished at ${since}: older ones were deleted, or never written`
        : "no finished message is there: all were deleted, or none was ever sent"
      : `messages finished before ${since} were deleted`;
  const gaps: string[] = [];
  if (rows > 0) {
    const time = isWindowed ? "" : ". The query does not say of when they are: with :from and :to in it, it would";
    gaps.push(`${rows} business rows have no message, and it is not known whether they had one: ${kept}${time}`);
  }
  if (isWindowed && looked.businessRows === 0 && looked.messages > 0) {
    gaps.push(
      `the business query returned no row, and ${looked.messages} messages are of the same time: does its column hold times as :from and :to are written? --time-zone, and docs/reconcile.md, say more`,
    );
  }
  if (handlings > 0) {
    gaps.push(`${handlings} handled messages are not there, and it is not known whether they were: ${kept}`);
  }
  if (moreEffects) gaps.push("there are more effects that are there more than once: only so many were told");
  return gaps;
}

function passedOver({ layout }: Settings, withoutKey: number, inbox: InboxResult | undefined): string[] {
  const notes: string[] = [];
  if (layout.columns.messageId === undefined)
    notes.push("this table has no column for receipts: they were not looked at");
  if (withoutKey > 0) notes.push(`${withoutKey} rows of the business query have no message_key: they were passed over`);
  for (const [type, count] of inbox?.foreign ?? []) {
    notes.push(
      `${count} handled messages of type ${type} were passed over: this producer has none of it. Name the type, if it should`,
    );
  }
  return notes;
}
