/** Reads for reconciling on any SQL database: each view is one transaction on one snapshot. */
import type {
  Identity,
  ReconcileStore,
  ReconcileView,
  UnknownConfirmation,
  UserQuery,
  UserRows,
  Window,
  WrittenMessage,
} from "../../../admin/reconcile/store.ts";
import { ConfigurationError, RowpostError, SchemaError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import type { Database } from "../../database.ts";
import { spelled } from "../cold.ts";
import { createIdsByTime } from "../insight/ids-by-time.ts";
import type { IdRange, Read } from "../insight/requests.ts";
import { createMessageSearch, type MessageSearch } from "../insight/search.ts";
import { chunkEnd, idBounds, nextType } from "../insight/statements.ts";
import type { TableLayout } from "../layout.ts";
import { integer, type messageSummary, type Row, text, textOrNull } from "../rows.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { DialectStatements } from "../statements.ts";
import { existing, readUnknown, repeatedRows, userRows, type WrappedQuery } from "./statements.ts";
import { namedTimes, putTimes, wallClockOf } from "./user-query.ts";

/**
 * Keys per lookup: MariaDB makes a join of more than 1,000, and beyond some hundred there is no
 * gain.
 */
const KEYS = 500;
/** Rows of a step along the primary key. */
const STEP = 2_000;
/** An operator's query may read a whole table. */
const STATEMENT_TIMEOUT_MS = 600_000;

export interface ReconcileParts {
  readonly layout: TableLayout;
  readonly statements: Pick<DialectStatements, "housekeeping" | "table">;
  readonly connect: Database["connect"];
  readonly sharedSession?: boolean | undefined;
}

interface ViewParts {
  readonly statements: ReconcileParts["statements"];
  readonly read: Read;
  readonly search: MessageSearch;
}

export function createReconcileStore(parts: ReconcileParts): ReconcileStore {
  const { layout, statements } = parts;
  const slots = createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    connect: () =>
      parts.connect({
        purpose: "tool",
        clock: layout.clock,
        snapshot: true,
        statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      }),
  });
  return {
    isWindowed(query) {
      const { from, to } = namedTimes(query, statements.table.words.opaque);
      if (from === to) return from;
      throw new ConfigurationError("the query names one of :from and :to; it must name both, or neither");
    },
    view: (work) => slots.use("scan", (session) => session.transaction((tx) => work(createView(parts, tx)))),
    close: () => slots.close(),
  };
}

function createView({ statements }: ReconcileParts, tx: Executor): ReconcileView {
  const { housekeeping, table } = statements;
  const read: Read = async (statement) => (await tx.run(spelled(table.words, statement))).rows;
  const parts: ViewParts = { statements, read, search: createMessageSearch({ table, read }) };

  function wrapped({ text: query, timeZone, type }: UserQuery, { fromMs, toMs }: Window, limit: number): WrappedQuery {
    const literal = (ms: number): string =>
      timeZone === undefined ? table.clock.instant(ms) : table.words.wallClock(wallClockOf(ms, timeZone));
    const bound = putTimes(query, table.words.opaque, (name) => literal(name === "from" ? fromMs : toMs));
    return { text: bound, typed: type === undefined, limit };
  }

  return {
    async clock() {
      const [row] = await read(housekeeping.readClock());
      return row === undefined ? Date.now() : integer(row, "now_ms");
    },

    async keptSince() {
      const finished = await oldestFinished(parts);
      return finished.length === 0 ? undefined : Math.min(...finished);
    },

    async rows(query, window, limit) {
      const rows = await asked(read(userRows(wrapped(query, window, limit + 1))));
      return answered(rows, query, limit);
    },

    async repeated(query, window, limit) {
      const rows = await asked(read(repeatedRows(wrapped(query, window, limit))));
      return rows.map((row) => ({
        type: query.type ?? textOrNull(row, "message_type") ?? "",
        key: text(row, "message_key"),
        times: integer(row, "times"),
      }));
    },

    missing: (identities) => missing(parts, identities),

    async messages(window, types, each) {
      for (const archived of [false, true]) await walk(parts, window, types, archived, each);
    },

    async unknownConfirmations(limit) {
      const rows = await read(readUnknown(table, limit));
      const identities = rows.map((row) => ({ type: text(row, "message_type"), key: text(row, "message_key") }));
      const gone = new Set((await missing(parts, identities)).map(({ key, type }) => `${type}\0${key}`));
      return rows.map((row) => unknownConfirmation(row, gone));
    },

    async types(limit) {
      const types = new Set<string>();
      for (const archived of [false, true]) {
        for (let after = ""; types.size < limit; types.add(after)) {
          const [row] = await read(nextType(table, { archived, after }));
          const next = row === undefined ? null : textOrNull(row, "message_type");
          if (next === null) break;
          after = next;
        }
      }
      return [...types];
    },
  };
}

/** Missing tables in the query itself are not missing tables of ours. */
async function asked(reading: Promise<readonly Row[]>): Promise<readonly Row[]> {
  return await reading.catch((error: unknown) => {
    if (error instanceof RowpostError && !(error instanceof SchemaError)) throw error;
    const origin = error instanceof SchemaError ? error.cause : error;
    const said = origin instanceof Error ? origin.message : String(origin);
    throw new ConfigurationError(
      `the query cannot be run: ${said}. It must return message_key, and message_type too where no type is given`,
      { cause: error },
    );
  });
}

function answered(rows: readonly Row[], { type }: UserQuery, limit: number): UserRows {
  const identities: Identity[] = [];
  for (const row of rows.slice(0, limit)) {
    const key = textOrNull(row, "message_key");
    const of = type ?? textOrNull(row, "message_type");
    if (key !== null && of !== null) identities.push({ type: of, key });
  }
  return {
    identities,
    more: rows.length > limit,
    withoutKey: Math.min(rows.length, limit) - identities.length,
  };
}

/**
 * When the finished messages with the lowest ids were finished: `sent`, `consumed`, and the first
 * of the archive. Creation times do not work, because a message delayed for a month outlives others
 * of its time. A message that awaits its confirmation may outlive deleted ones, so it does not show
 * what is kept.
 */
async function oldestFinished({ read, search, statements }: ViewParts): Promise<readonly number[]> {
  const { housekeeping, table } = statements;
  const finished: number[] = [];
  const look = async (ids: readonly Row[], alias: string, archived: boolean): Promise<void> => {
    const id = ids[0] === undefined ? null : textOrNull(ids[0], alias);
    if (id === null) return;
    const match = { ids: [id] };
    const found = await search.find({ match, archived, along: "names", newestFirst: false, limit: 1 });
    for (const { consumedAt, gmtModified, sentAt, state } of await search.summaries(found, archived)) {
      finished.push(Date.parse((state === "consumed" ? consumedAt : sentAt) ?? gmtModified));
    }
  };
  for (const state of ["sent", "consumed"] as const) {
    await look(await read(housekeeping.passFinished({ state, afterId: "0", rows: 1 })), "id", false);
  }
  await look(await read(idBounds(table, { archived: true })), "first_id", true);
  return finished;
}

/** Checks the table, then its archive. Byte for byte, because a collation may equate others. */
async function missing({ read, statements }: ViewParts, identities: readonly Identity[]): Promise<Identity[]> {
  const byType = new Map<string, Set<string>>();
  for (const { key, type } of identities) byType.set(type, (byType.get(type) ?? new Set()).add(key));
  const left: Identity[] = [];
  for (const [type, keys] of byType) {
    for (const archived of [false, true]) {
      const all = [...keys];
      for (let from = 0; from < all.length; from += KEYS) {
        const request = { type, keys: all.slice(from, from + KEYS), archived };
        for (const row of await read(existing(statements.table, request))) {
          if (text(row, "message_type") === type) keys.delete(text(row, "message_key"));
        }
      }
    }
    for (const key of keys) left.push({ type, key });
  }
  return left;
}

/** `gone`: type and key of missing messages. */
function unknownConfirmation(row: Row, gone: ReadonlySet<string>): UnknownConfirmation {
  const type = text(row, "message_type");
  const key = text(row, "message_key");
  const consumer = text(row, "consumer");
  return {
    type,
    key,
    consumer: consumer === "" ? undefined : consumer,
    error: textOrNull(row, "reason") ?? undefined,
    times: integer(row, "times"),
    firstAt: text(row, "first_at"),
    lastAt: text(row, "last_at"),
    isThere: !gone.has(`${type}\0${key}`),
  };
}

/** In steps along the primary key, between the ids at the ends of the window. */
async function walk(
  { read, search, statements }: ViewParts,
  { fromMs, toMs }: Window,
  types: readonly string[] | undefined,
  archived: boolean,
  each: (batch: readonly WrittenMessage[]) => void,
): Promise<void> {
  const { table } = statements;
  const match = {
    ...(types === undefined ? {} : { types }),
    // Starts at the millisecond before; finer fractions in the column are compared below.
    createdAfter: new Date(fromMs - 1).toISOString(),
    createdBefore: new Date(toMs).toISOString(),
  };
  let left: IdRange | undefined = await createIdsByTime({ read, table })(match, archived);
  while (left !== undefined) {
    const [row] = await read(chunkEnd(table, { ...left, archived, newestFirst: false, rows: STEP }));
    const end = row === undefined ? undefined : text(row, "id");
    const step = end === undefined ? left : { ...left, highId: end };
    const request = { ...step, match, archived, along: "ids", newestFirst: false, limit: STEP + 1 } as const;
    const found = await search.find(request);
    const written = (await search.summaries(found, archived)).map((message) => writtenMessage(table.layout, message));
    each(written.filter(({ createdMs }) => createdMs >= fromMs));
    left = end === undefined ? undefined : { ...left, lowId: String(BigInt(end) + 1n) };
  }
}

function writtenMessage({ columns }: TableLayout, message: ReturnType<typeof messageSummary>): WrittenMessage {
  const { confirmOverdue = false, gmtCreate, id, key, messageId, nextRetryAt, state, type } = message;
  const timeMs = state === "sent" && nextRetryAt !== null ? Date.parse(nextRetryAt) : Number.NaN;
  return {
    id,
    type,
    key,
    state,
    createdMs: Date.parse(gmtCreate),
    receipt: columns.messageId === undefined ? undefined : (messageId ?? null),
    dueMs: confirmOverdue ? 0 : Number.isNaN(timeMs) ? undefined : timeMs,
  };
}
