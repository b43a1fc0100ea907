/**
 * One group's side on any SQL database: leases, reads, and the one transaction that ends a batch.
 */
import { queueMonth } from "../../../message/queue-id.ts";
import type {
  ConsumerPlace,
  ConsumptionStore,
  GroupKey,
  RecordedAttempt,
  Settlement,
  StoredQueueMessage,
} from "../../../queue/store.ts";
import { DatabaseConflictError } from "../../../runtime/errors.ts";
import { grouped } from "../../../runtime/grouped.ts";
import type { Executor } from "../../../transactions/executor.ts";
import type { Session, SessionOptions } from "../../database.ts";
import { createLeaseStore } from "../lease-store.ts";
import { integer, type Row, text, textOrNull, wholeText } from "../rows.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { QueueStatements } from "./statements.ts";

export interface ConsumptionParts {
  readonly statements: QueueStatements;
  readonly connect: (options: SessionOptions) => Promise<Session>;
  readonly sharedSession: boolean | undefined;
  readonly isTableMissing: (error: unknown) => boolean;
  /** A driver's error as one of ours, where it means one. */
  readonly translateError: (error: unknown, statement: string) => unknown;
}

export function createConsumptionStore(
  { statements, connect, sharedSession, isTableMissing, translateError }: ConsumptionParts,
  key: GroupKey,
  lockWaitTimeoutMs: number,
): ConsumptionStore {
  const { consume, groups, redelivery } = statements;
  const leases = statements.holding(key);
  /** Months without a record table; none is made for a month that was dropped. */
  const dropped = new Set<number>();
  const lostListeners = new Set<() => void>();
  const onLost = (): void => {
    for (const listener of lostListeners) listener();
  };
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    connect: (slot) =>
      connect({
        purpose: slot === "lease" ? "lease" : "relay",
        lockWaitTimeoutMs,
        ...(slot === "lease" ? { onLost } : {}),
      }),
  });

  async function read(statement: Parameters<Session["run"]>[0]): Promise<readonly Row[]> {
    return (await slots.retry("scan", (session) => session.run(statement))).rows;
  }

  const settleIn: ConsumptionStore["settleIn"] = async (tx, owner, settlement, place) => {
    const { partition, redeliveries, redelivered, mayBeWritten, released = [] } = settlement;
    const month = settlement.nextId === undefined ? 0 : queueMonth(settlement.nextId);
    const orId = (mayBeWritten ? settlement.nextId : undefined) ?? settlement.fromId;
    const fence = await tx.run(consume.moveProgress(key, { ...settlement, owner, month, orId }));
    if (fence.affected !== 1) return false;
    await insertRecords(tx, settlement, place);
    const fresh = redeliveries.filter(({ again }) => again !== true);
    const again = redeliveries.filter((each) => each.again === true);
    if (fresh.length > 0) await tx.run(redelivery.putRedeliveries(key, partition, fresh));
    if (again.length > 0) {
      const { affected } = await tx.run(redelivery.changeRedeliveries(key, partition, again));
      if (affected !== again.length && !mayBeWritten) return false;
    }
    if (redelivered.length > 0) {
      const { affected } = await tx.run(redelivery.deleteRedeliveries(key, partition, redelivered));
      if (affected !== redelivered.length && !mayBeWritten) return false;
    }
    if (released.length > 0) await tx.run(redelivery.releaseKeys(key, partition, released));
    return true;
  };

  async function insertRecords(tx: Executor, { round, records }: Settlement, place: ConsumerPlace): Promise<void> {
    for (const [month, list] of grouped(records, ({ id }) => queueMonth(id))) {
      if (dropped.has(month)) continue;
      try {
        await tx.run(consume.insertRecords(key, { month, round, place, records: list }));
      } catch (cause) {
        if (!isTableMissing(cause)) throw cause;
        dropped.add(month);
        throw new DatabaseConflictError(`the tables of ${month} were dropped while its messages were consumed`, {
          cause,
        });
      }
    }
  }

  return {
    leases: createLeaseStore({ leases, slots, onSessionLost: (listener) => void lostListeners.add(listener) }),
    settleIn,

    async join(start) {
      await slots.retry("lease", async (session) => {
        await session.run(leases.forgetInstances());
        await session.run(groups.putGroup(key));
        const { rows } = await session.run(consume.readProgress(key));
        await session.run(consume.insertProgress(key, rows.length > 0 ? "start" : start));
      });
    },

    async progress(partitions) {
      const rows = await read(consume.readProgress(key));
      return rows
        .map((row) => ({
          partition: integer(row, "partitionno"),
          nextId: text(row, "nextid"),
          round: integer(row, "round"),
          epoch: wholeText(row, "epoch"),
        }))
        .filter(({ partition }) => partitions.includes(partition));
    },

    async counters() {
      const rows = await read(consume.readCounters(key));
      const lastIds = new Map(
        rows.map((row) => {
          const partition = integer(row, "partitionno");
          return [partition, String((BigInt(text(row, "lastid")) << 6n) | BigInt(partition))];
        }),
      );
      return { lastIds, paused: rows.some((row) => integer(row, "paused") === 1) };
    },

    async heldUp(partition, orderingKeys) {
      const rows = await read(redelivery.heldUpKeys(key, partition, orderingKeys));
      return rows.map((row) => text(row, "orderingkey"));
    },

    async read(request) {
      try {
        return (
          await read(consume.readMessages({ topic: key.topic, ...request, bodyLimit: request.bodyLimit ?? WHOLE }))
        ).map(storedMessage);
      } catch (error) {
        if (isTableMissing(error)) return undefined;
        throw error;
      }
    },

    async due(partition, limit) {
      const rows = await read(redelivery.dueRedeliveries(key, partition, limit));
      return rows.map((row) => ({
        id: text(row, "id"),
        attempt: integer(row, "attempt"),
        firstAttempt: integer(row, "firstattempt"),
        orderingKey: textOrNull(row, "orderingkey"),
      }));
    },

    async readIds(ids) {
      const found: StoredQueueMessage[] = [];
      for (const [month, list] of grouped(ids, queueMonth)) {
        try {
          const rows = await read(consume.readIds({ topic: key.topic, month, ids: list }));
          found.push(...rows.map(storedMessage));
        } catch (error) {
          if (!isTableMissing(error)) throw error;
        }
      }
      return found;
    },

    async recorded(round, ids) {
      const found: RecordedAttempt[] = [];
      for (const [month, list] of grouped(ids, queueMonth)) {
        if (dropped.has(month)) continue;
        try {
          const rows = await read(consume.readRecorded(key, { month, round, ids: list }));
          for (const row of rows)
            found.push({
              id: text(row, "id"),
              attempt: integer(row, "attempt"),
              isSilent: integer(row, "silent") === 1,
            });
        } catch (error) {
          if (!isTableMissing(error)) throw error;
        }
      }
      return found;
    },

    async settle(owner, settlement, place) {
      try {
        await slots.retry("settle", (session) =>
          session.transaction(async (tx: Executor) => {
            if (!(await settleIn(tx, owner, settlement, place))) throw new FencedOut();
          }),
        );
        return true;
      } catch (error) {
        if (error instanceof FencedOut) return false;
        throw error;
      }
    },

    isConflict(error): error is Error {
      let each = error;
      for (let depth = 0; depth < MOST_CAUSES && each instanceof Error; depth += 1) {
        if (translateError(each, "handler") instanceof DatabaseConflictError) return true;
        each = each.cause;
      }
      return false;
    },

    close: () => slots.close(),
  };
}

/** A chain of causes may be a circle. */
const MOST_CAUSES = 10;

/** No body has more bytes. */
const WHOLE = 2 ** 31;

/** Rolls back a transaction whose partition is not ours any more. */
class FencedOut extends Error {}

function storedMessage(row: Row): StoredQueueMessage {
  const leftOutBytes = row["left_out_bytes"] == null ? undefined : integer(row, "left_out_bytes");
  return {
    id: text(row, "id"),
    partition: integer(row, "partition_no"),
    key: textOrNull(row, "message_key"),
    type: textOrNull(row, "message_type"),
    ...(leftOutBytes === undefined ? { body: text(row, "message_data") } : { body: "", leftOutBytes }),
    contentType: textOrNull(row, "content_type"),
    headers: textOrNull(row, "headers"),
    orderingKey: textOrNull(row, "ordering_key"),
    dueInMs: integer(row, "due_in_ms"),
  };
}
