/** Compares the work of consumers with the producer's messages. */
import type { Database } from "../../databases/database.ts";
import type { SeenHandling } from "../../inbox/store.ts";
import { comparableSince } from "./business-rows.ts";
import { createFinding, type Finding } from "./finding.ts";
import type { ReconcileInbox, Settings } from "./options.ts";
import type { ReconcileStore, Window } from "./store.ts";

/** With more, all messages of a consumer are examined. */
const MOST_TYPES = 1_000;
/** With more, the consumer has to be fixed first. */
const MOST_REPEATED = 10_000;

export interface InboxResult {
  readonly handlings: number;
  /** Missing messages that retention may have deleted. */
  readonly undecided: number;
  /** Types without a message of the producer, with the number of rows. */
  readonly foreign: ReadonlyMap<string, number>;
}

interface InboxRequest {
  readonly settings: Settings;
  readonly inbox: ReconcileInbox;
  readonly window: Window;
  readonly nowMs: number;
  readonly tell: (findings: readonly Finding[], handlings: number) => Promise<void>;
}

/** A page at a time. Reads the inbox first: the producer committed its messages earlier. */
export async function compareInbox(store: ReconcileStore, request: InboxRequest): Promise<InboxResult> {
  const { inbox, nowMs, settings, tell, window } = request;
  const { consumer, database = settings.database, schema, table = "message_inbox" } = inbox;
  const types = settings.types ?? (await store.view((view) => view.types(MOST_TYPES)));
  const known = types.length < MOST_TYPES || settings.types !== undefined ? new Set(types) : undefined;
  const foreign = new Map<string, number>();
  let handlings = 0;
  let undecided = 0;
  await database.inbox.store({ table, schema }).handlings({ ...window, consumer }, async (page) => {
    handlings += page.length;
    const ours = page.filter(({ type }) => known?.has(type) !== false);
    if (settings.types === undefined) for (const { type } of page) if (known?.has(type) === false) count(foreign, type);
    const { missing, since } = await store.view(async (view) => ({
      missing: await view.missing(ours),
      since: ours.length === 0 ? 0 : await comparableSince(view, settings, nowMs),
    }));
    const names = new Set(missing.map(({ key, type }) => `${type}\0${key}`));
    const unknown = ours.filter(({ key, type }) => names.has(`${type}\0${key}`));
    const told = unknown.filter(({ handledAt }) => Date.parse(handledAt) >= since);
    undecided += unknown.length - told.length;
    await tell(told.map(unknownToProducer), page.length);
  });
  return { handlings, undecided, foreign };
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function unknownToProducer(handling: SeenHandling): Finding {
  const { consumer, handledAt, handledBy, messageId } = handling;
  return createFinding("unknown-to-producer", handling, {
    consumer,
    atMs: Date.parse(handledAt),
    about: `${messageId === null ? "the message" : `the message ${messageId}`} of ${consumer}, on ${handledBy}, `,
  });
}

/** Returns true when there may be more. */
export async function compareEffects(
  settings: Settings,
  window: Window,
  tell: (findings: readonly Finding[]) => Promise<void>,
): Promise<boolean> {
  const { effects, inbox, types } = settings;
  if (effects === undefined) return false;
  const database: Database = effects.database ?? inbox?.database ?? settings.database;
  const isOwn = database === settings.database;
  const store = database.reconcileStore({ layout: isOwn ? settings.layout : database.defaultLayout });
  try {
    store.isWindowed(effects.query);
    const type = types?.length === 1 ? types[0] : undefined;
    const query = { text: effects.query, type, timeZone: settings.timeZone };
    const repeated = await store.view((view) => view.repeated(query, window, MOST_REPEATED));
    await tell(repeated.map((each) => createFinding("consumed-twice", each, { about: `${each.times} times: ` })));
    return repeated.length === MOST_REPEATED;
  } finally {
    await store.close();
  }
}
