import type { RelayStore, RelayStoreOptions, RowRefusal, ScannedMessage, ScanRequest } from "../../relay/store.ts";
import {
  ConfigurationError,
  DatabaseUnavailableError,
  describeError,
  RowpostError,
  RowRefusedError,
} from "../../runtime/errors.ts";
import type { QueryResult, Statement } from "../../transactions/executor.ts";
import type { Session, SessionOptions } from "../database.ts";
import { readAbilities } from "./abilities.ts";
import { checkSchema } from "./check-schema.ts";
import { createHousekeepingStore } from "./housekeeping-store.ts";
import type { TableLayout } from "./layout.ts";
import { hasClaimToken } from "./layouts.ts";
import { createLeaseStore } from "./lease-store.ts";
import { createPastLocks } from "./past-locks.ts";
import { pastRefused, telling } from "./past-refused.ts";
import { integer, keyQueueRow, scannedMessage, storedBody, text, textOrNull } from "./rows.ts";
import { createSessionSlots, type SessionSlots } from "./session-slots.ts";
import { createSettle } from "./settle-store.ts";
import { createSettleWithin } from "./settle-within.ts";
import type { DialectStatements } from "./statements.ts";

export interface StoreParts {
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  connect(options: SessionOptions): Promise<Session>;
  /** Whether the table refuses to store a row as written. */
  readonly isRowRefused: (error: unknown) => boolean;
  /** SQLite: all sessions are one handle. */
  readonly sharedSession?: boolean | undefined;
}

/**
 * Lock wait for a topic's counter in the queue, which a user's transaction may hold for minutes:
 * this session appends to all topics (rule: isolation). MySQL and MariaDB: 1 s.
 */
export const APPEND_LOCK_WAIT_MS = 250;

const DEFAULT_OPTIONS: RelayStoreOptions = { sendingMark: "on", statementTimeoutMs: 30_000, lockWaitTimeoutMs: 3_000 };

/**
 * A relay with few shards reads up to this many times its limit, because most rows belong to
 * others.
 */
const MOST_WIDENING = 4;

/** Opens no connection before `open`. */
export function createRelayStore(parts: StoreParts): RelayStore {
  const { layout, statements } = parts;
  let options = DEFAULT_OPTIONS;
  const lostListeners = new Set<() => void>();
  const onLost = (): void => {
    for (const listener of lostListeners) listener();
  };
  const claimPastLocks = createPastLocks();
  const onRefused = (refusal: RowRefusal): void => options.onRowRefused?.(refusal);
  const slots = createSessionSlots({
    proveLost: !hasClaimToken(layout),
    shared: parts.sharedSession,
    meaning: (error) => refusalOr(error, parts.isRowRefused),
    signal: () => options.signal,
    connect: (slot) =>
      parts.connect({
        purpose: slot === "lease" ? "lease" : "relay",
        statementTimeoutMs: options.statementTimeoutMs,
        lockWaitTimeoutMs: slot === "append" ? APPEND_LOCK_WAIT_MS : options.lockWaitTimeoutMs,
        clock: layout.clock,
        signal: options.signal,
        ...(slot === "lease" ? { onLost } : {}),
      }),
  });

  let scannedOn: Session | undefined;

  /**
   * Claims scanned rows only on the session of the scan. After a fail-over that lost commits, ids
   * recur with other messages or bodies, which no token detects; the scanned body would be
   * published under the wrong name (rule: one-server).
   */
  function takeScanned(statement: Statement): (session: Session) => Promise<QueryResult> {
    return async (session) => {
      if (scannedOn === undefined || scannedOn === session) return await session.run(statement);
      throw new DatabaseUnavailableError(
        `${statement.name}: the connection is lost on which these messages were found; they are looked for again`,
      );
    };
  }

  return {
    leases: createLeaseStore({
      leases: statements.leases,
      sending: statements.housekeeping,
      slots,
      onRefused,
      onSessionLost: (listener) => void lostListeners.add(listener),
    }),
    housekeeping: createHousekeepingStore({ layout, statements, slots, onRefused }),

    async open(chosen) {
      options = chosen;
      if (chosen.sendingMark === "off" && !statements.facts.listsInFlight) {
        throw new ConfigurationError(
          'sendingMark: "off" is refused on this database: it is slower there than the mark, which saves nothing but a commit',
        );
      }
      if (chosen.sendingMark === "off" && !hasClaimToken(layout)) {
        throw new ConfigurationError(
          `sendingMark: "off" needs a column that changes with every change of a row; the layout ${layout.name} has no lock_version`,
        );
      }
      return await slots.use("lease", async (session) => {
        const checked = await checkSchema(session, { layout, schema: statements.schema });
        await session.run(statements.leases.ensureShards());
        await session.run(statements.leases.forgetInstances());
        return await readAbilities(session, { layout, schema: statements.schema, checked });
      });
    },

    scan: (request) =>
      scan(parts, request, (statement) =>
        slots.use("scan", (session) => {
          scannedOn = session;
          return session.run(statement);
        }),
      ),

    async readBodies(ids) {
      if (ids.length === 0) return new Map();
      const { rows } = await slots.use("scan", (session) => session.run(statements.relay.readBodies(ids)));
      return new Map(rows.map((row) => [text(row, "id"), storedBody(layout, row) ?? ""]));
    },

    waitingTopics: (request) => waitingTopics(parts, slots, request),

    async keyQueues(request) {
      if (request.keys.length === 0) return [];
      if (layout.columns.orderingKey === undefined) return [];
      const { rows } = await slots.use("scan", (session) => session.run(statements.relay.keyQueues(request)));
      return rows.map((row) => keyQueueRow(layout, row));
    },

    async claim({ fence, rows: all }) {
      const claimed = (rows: typeof all): Promise<number> =>
        claimPastLocks(
          async () => (await slots.use("scan", takeScanned(statements.relay.claim({ fence, rows })))).affected,
          async () => {
            const unlocked = statements.relay.claim({ fence, rows, skipLocked: true });
            return (await slots.retry("scan", takeScanned(unlocked))).affected;
          },
        );
      return await pastRefused(all, claimed, telling(onRefused, "claim"));
    },

    async verifyClaim({ fence, rows }) {
      if (rows.length === 0) return [];
      const result = await slots.use("scan", (session) => session.run(statements.relay.verifyClaim({ fence, rows })));
      return result.rows.map((row) => text(row, "id"));
    },

    async listInFlight({ fence, idsByShard }) {
      if (idsByShard.length === 0) return [];
      const list = statements.relay.listInFlight({ fence, idsByShard });
      const { affected: changed } = await slots.retry("scan", takeScanned(list));
      if (changed === idsByShard.length) return idsByShard.map(({ shard }) => shard);
      // Epochs only grow, so a shard that is ours now was ours when the list was written.
      const held = await slots.use("scan", (session) => session.run(statements.relay.readHeld(fence)));
      return held.rows.map((row) => integer(row, "shard"));
    },

    settle: createSettle({ layout, statements, slots }),
    settleWithin: createSettleWithin({ layout, statements, slots }),
    abandonSessions: () => slots.abandon(),
    close: () => slots.close(),
  };
}

/** Recognizes refused rows in the same way for all statements. */
function refusalOr(error: unknown, isRowRefused: StoreParts["isRowRefused"]): unknown {
  if (error instanceof RowpostError || !isRowRefused(error)) return error;
  return new RowRefusedError(`the table does not take a row as it is to be written (${describeError(error)})`, {
    cause: error,
  });
}

/**
 * With `shards`, the statement gets a larger limit and also returns rows of other shards, without
 * bodies. The caller skips them and sees how far the scan came, so another relay's million rows are
 * walked once per sweep and not at each poll (rule: bounded-scan).
 */
async function scan(
  parts: StoreParts,
  request: ScanRequest,
  run: (statement: Statement) => Promise<QueryResult>,
): Promise<ScannedMessage[]> {
  const { shards } = request;
  const widening =
    shards === undefined ? 1 : Math.min(MOST_WIDENING, parts.statements.facts.shardCount / Math.max(1, shards.length));
  const widen = <Limits extends ScanLimits>(limits: Limits): Limits => ({
    ...limits,
    immediateLimit: Math.ceil(limits.immediateLimit * widening),
    dueLimit: Math.ceil(limits.dueLimit * widening) + (limits.dueLimit > 0 ? (limits.foreignDue ?? 0) : 0),
  });
  const topics = request.topics?.filter(({ dueLimit, immediateLimit }) => dueLimit > 0 || immediateLimit > 0);
  if (topics?.length === 0) return [];
  const { relay } = parts.statements;
  const statement =
    topics === undefined ? relay.scan(widen(request)) : relay.scanTopics({ ...request, topics: topics.map(widen) });
  const { rows } = await run(statement);
  if (shards === undefined) return rows.map((row) => scannedMessage(parts.layout, row));
  const room = createRoom(request);
  const ours = new Set(shards);
  return rows
    .map((row) => scannedMessage(parts.layout, row))
    .flatMap((message) => {
      const isOurs = ours.has(message.shard);
      // More of ours than requested: the rest is left to the next scan.
      if (!room(message, isOurs)) return [];
      return [isOurs ? message : { ...message, body: "" }];
    });
}

type ScanLimits = Pick<ScanRequest, "immediateLimit" | "dueLimit" | "foreignDue">;

/** Whether a row's branch has room for another requested row; uses it up. */
function createRoom(request: ScanRequest): (message: ScannedMessage, takes: boolean) => boolean {
  const all: [string, ScanLimits][] = request.topics?.map((topic) => [topic.topic, topic]) ?? [["", request]];
  const rooms = new Map(
    all.map(([topic, limits]) => [topic, { due: limits.dueLimit, immediate: limits.immediateLimit }]),
  );
  return ({ due, topic }, takes) => {
    const room = rooms.get(request.topics === undefined ? "" : topic);
    const branch = due ? "due" : "immediate";
    // A folding collation finds `Orders` for `orders`.
    if (room === undefined) return true;
    if (room[branch] <= 0) return false;
    if (takes) room[branch] -= 1;
    return true;
  };
}

/**
 * Looks after each known topic, then after each one found, until there are no new ones: a single
 * statement if all are known. Topics are not compared here, because the order is the column's.
 */
async function waitingTopics(
  { statements }: StoreParts,
  slots: SessionSlots,
  { known, limit }: Parameters<RelayStore["waitingTopics"]>[0],
): Promise<string[]> {
  const seen = new Set(known);
  const found: string[] = [];
  // No topic is empty, so all come after "".
  let after: readonly string[] = ["", ...known];
  while (after.length > 0 && found.length < limit) {
    const statement = statements.relay.nextTopics(after);
    const { rows } = await slots.use("scan", (session) => session.run(statement));
    const next = new Set(rows.flatMap((row) => textOrNull(row, "topic") ?? []));
    after = [...next].filter((topic) => !seen.has(topic));
    for (const topic of after) seen.add(topic);
    found.push(...after);
  }
  return found.slice(0, limit);
}
