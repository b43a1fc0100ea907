/** The relay's store on any SQL database: which statement when, on which session, and what its answer means. */
import type { RelayStore, RelayStoreOptions, ScannedMessage, ScanRequest } from "../../outbox/relay-store.ts";
import { ConfigurationError, DatabaseConflictError } from "../../runtime/errors.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { Session, SessionOptions } from "../database.ts";
import { checkSchema } from "./check-schema.ts";
import { createHousekeepingStore } from "./housekeeping-store.ts";
import type { TableLayout } from "./layout.ts";
import { claimToken } from "./layouts.ts";
import { createLeaseStore } from "./lease-store.ts";
import { integer, keyQueueRow, scannedMessage, text } from "./rows.ts";
import { createSessionSlots, type SessionSlots } from "./session-slots.ts";
import { createSettle } from "./settle-store.ts";
import type { DialectStatements } from "./statements.ts";

/** What a dialect brings to the flow. */
export interface StoreParts {
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  connect(options: SessionOptions): Promise<Session>;
  /** SQLite: all sessions are one handle. */
  readonly sharedSession?: boolean | undefined;
}

const DEFAULT_OPTIONS: RelayStoreOptions = { sendingMark: "on", statementTimeoutMs: 30_000, lockWaitTimeoutMs: 3_000 };

/** A relay with few shards looks at this many times its limit, because most rows it meets are somebody else's. */
const MOST_WIDENING = 4;

/** Claims after one that waited for a lock in vain that pass locked rows over at once: else each batch with the locked row costs the lock wait. */
const CAUTIOUS_CLAIMS = 50;

/** Makes the store. No connection is opened before `open`. */
export function createRelayStore(parts: StoreParts): RelayStore {
  const { layout, statements } = parts;
  let options = DEFAULT_OPTIONS;
  let cautious = 0;
  const slots = createSessionSlots({
    proveLost: claimToken(layout) === undefined,
    shared: parts.sharedSession,
    connect: (slot) =>
      parts.connect({
        purpose: slot === "lease" ? "lease" : "relay",
        statementTimeoutMs: options.statementTimeoutMs,
        lockWaitTimeoutMs: options.lockWaitTimeoutMs,
        clock: layout.clock,
      }),
  });

  return {
    leases: createLeaseStore({ statements, slots }),
    housekeeping: createHousekeepingStore({ layout, statements, slots }),

    async open(chosen) {
      options = chosen;
      if (chosen.sendingMark === "off" && claimToken(layout) === undefined) {
        throw new ConfigurationError(
          `sendingMark: "off" needs a column that changes with every change of a row; the layout ${layout.name} has no lock_version`,
        );
      }
      // Again after a deadlock: where the lease rows exist, a claim of another relay may hold them, in the order of its messages.
      await slots.retry("lease", async (session) => {
        await checkSchema(session, { layout, schema: statements.schema });
        await session.run(statements.leases.ensureShards());
        await session.run(statements.leases.forgetInstances());
      });
    },

    scan: (request) => scan(parts, slots, request),

    async keyQueues(request) {
      if (request.keys.length === 0) return [];
      if (layout.columns.orderingKey === undefined) return [];
      const { rows } = await slots.use("scan", (session) => session.run(statements.relay.keyQueues(request)));
      return rows.map((row) => keyQueueRow(layout, row));
    },

    async claim({ fence, rows }) {
      if (rows.length === 0) return 0;
      if (cautious > 0) {
        cautious -= 1;
        return await affected(slots, "scan", statements.relay.claim({ fence, rows, skipLocked: true }));
      }
      try {
        return (await slots.use("scan", (session) => session.run(statements.relay.claim({ fence, rows })))).affected;
      } catch (error) {
        if (!(error instanceof DatabaseConflictError)) throw error;
        // Somebody holds one of the rows, perhaps for minutes: the others must not wait for it, and the next batches not find it out again.
        cautious = CAUTIOUS_CLAIMS;
        return await affected(slots, "scan", statements.relay.claim({ fence, rows, skipLocked: true }));
      }
    },

    async verifyClaim({ fence, rows }) {
      if (rows.length === 0) return [];
      const result = await slots.use("scan", (session) => session.run(statements.relay.verifyClaim({ fence, rows })));
      return result.rows.map((row) => text(row, "id"));
    },

    async listInFlight({ fence, idsByShard }) {
      if (idsByShard.length === 0) return [];
      const changed = await affected(slots, "scan", statements.relay.listInFlight({ fence, idsByShard }));
      if (changed === idsByShard.length) return idsByShard.map(({ shard }) => shard);
      // Epochs only grow: a shard that is ours now was ours when the list was written.
      const held = await slots.use("scan", (session) => session.run(statements.relay.readHeld(fence)));
      return held.rows.map((row) => integer(row, "shard"));
    },

    settle: createSettle({ layout, statements, slots }),
    abandonSessions: () => slots.abandon(),
    close: () => slots.close(),
  };
}

/** Runs an UPDATE that may run twice; the number of rows that it matched. */
async function affected(slots: SessionSlots, slot: "scan", statement: Statement): Promise<number> {
  const result = await slots.retry(slot, (session) => session.run(statement));
  return result.affected;
}

/**
 * Without `shards` the rows are what the caller asked for. With them, rows of other shards stand between ours: the statement is asked for more,
 * and those rows are returned as well, without their body. The caller passes them over, and knows from them how far the scan came and whether
 * it reached the end, so that a million rows of another relay are walked once in a sweep and not at each poll (rule R12).
 */
async function scan(parts: StoreParts, slots: SessionSlots, request: ScanRequest): Promise<ScannedMessage[]> {
  const { shards } = request;
  const widening =
    shards === undefined ? 1 : Math.min(MOST_WIDENING, parts.statements.facts.shardCount / Math.max(1, shards.length));
  const widened: ScanRequest = {
    ...request,
    immediateLimit: Math.ceil(request.immediateLimit * widening),
    dueLimit: Math.ceil(request.dueLimit * widening),
  };
  const { rows } = await slots.use("scan", (session) => session.run(parts.statements.relay.scan(widened)));
  if (shards === undefined) return rows.map(scannedMessage);
  const ours = new Set(shards);
  const found: ScannedMessage[] = [];
  const room = { due: request.dueLimit, immediate: request.immediateLimit };
  for (const row of rows) {
    const message = scannedMessage(row["message_body"] === null ? { ...row, message_body: "" } : row);
    const branch = message.due ? "due" : "immediate";
    if (ours.has(message.shard)) {
      // More of ours than asked for: the rest belongs to the next scan.
      if (room[branch] <= 0) continue;
      room[branch] -= 1;
    } else if (room[branch] <= 0) continue;
    found.push(message);
  }
  return found;
}
