import { queueMonth } from "../../../message/queue-id.ts";
import {
  dueRedeliveries,
  forgetMembers,
  insertProgress,
  readProgress,
  removeMember,
} from "../../../queue/consuming/statements.ts";
import { putGroup } from "../../../queue/groups/statements.ts";
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
import type { Executor, Statement } from "../../../transactions/executor.ts";
import type { Session } from "../../database.ts";
import { spelled } from "../cold.ts";
import { createTaking } from "../lease-store.ts";
import { integer, type Row, text, textOrNull, wholeText } from "../rows.ts";
import type { SessionParts, SharedSessions } from "./shared-sessions.ts";

export interface ConsumptionParts extends SessionParts {
  readonly isTableMissing: (error: unknown) => boolean;
  readonly translateError: (error: unknown, statement: string) => unknown;
}

export function createConsumptionStore(
  { statements, words, isTableMissing, translateError }: ConsumptionParts,
  key: GroupKey,
  shared: SharedSessions,
): ConsumptionStore {
  const { consume, redelivery } = statements;
  const leases = {
    ...statements.holding(key),
    removeInstance: (owner: string) => spelled(words, removeMember(key, owner)),
    forgetInstances: () => spelled(words, forgetMembers(key)),
  };
  /** Months without a record table; a dropped month's table is not recreated. */
  const dropped = new Set<number>();
  const { slots } = shared;

  async function read(statement: Parameters<Session["run"]>[0]): Promise<readonly Row[]> {
    return (await slots.retry("scan", (session) => session.run(statement))).rows;
  }

  const settleIn: ConsumptionStore["settleIn"] = async (tx, owner, settlement, place) => {
    for (const step of stepsOf(owner, settlement, place)) if (!(await step(tx))) return false;
    return true;
  };

  /** The first step locks the partition and checks that this owner still has it. */
  function stepsOf(owner: string, settlement: Settlement, place: ConsumerPlace): Step[] {
    const { partition, redeliveries, redelivered, mayBeWritten, released = [] } = settlement;
    const fresh = redeliveries.filter(({ again }) => again !== true);
    const again = redeliveries.filter((each) => each.again === true);
    const steps = recordingSteps(owner, settlement, place);
    const write = (statement: Statement, rows?: number): void => {
      steps.push(async (to) => {
        const { affected } = await to.run(statement);
        return rows === undefined || affected === rows || mayBeWritten;
      });
    };
    if (fresh.length > 0) write(redelivery.putRedeliveries(key, partition, fresh));
    if (again.length > 0) write(redelivery.changeRedeliveries(key, partition, again), again.length);
    if (redelivered.length > 0) write(redelivery.deleteRedeliveries(key, partition, redelivered), redelivered.length);
    if (released.length > 0) write(redelivery.releaseKeys(key, partition, released));
    return steps;
  }

  /** Without records of dropped months. */
  function recordingSteps(owner: string, settlement: Settlement, place: ConsumerPlace): Step[] {
    const { round, nextId, fromId, mayBeWritten } = settlement;
    const month = nextId === undefined ? 0 : queueMonth(nextId);
    const progress = { ...settlement, owner, month, orId: (mayBeWritten ? nextId : undefined) ?? fromId };
    const recorded = [...grouped(settlement.records, ({ id }) => queueMonth(id))]
      .filter(([of]) => !dropped.has(of))
      .map(([of, records]) => ({ month: of, round, place, records }));
    const [only, ...more] = recorded;
    const { moveAndRecord } = consume;
    if (only !== undefined && more.length === 0 && moveAndRecord !== undefined) {
      return [
        async (to) => (await seeTable(only.month, () => to.run(moveAndRecord(key, progress, only)))).affected > 0,
      ];
    }
    return [
      async (to) => (await to.run(consume.moveProgress(key, progress))).affected === 1,
      ...recorded.map(
        (each): Step =>
          async (to) => {
            await seeTable(each.month, () => to.run(consume.insertRecords(key, each)));
            return true;
          },
      ),
    ];
  }

  async function seeTable<T>(month: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (!isTableMissing(cause)) throw cause;
      dropped.add(month);
      throw new DatabaseConflictError(`the tables of ${month} were dropped while its messages were consumed`, {
        cause,
      });
    }
  }

  return {
    leases: {
      ...createTaking({ leases, slots }),
      heartbeat: (request) => shared.heartbeat({ key, ...request }),
      freeLocks: (locks) => shared.freeLocks(locks),
      onSessionLost: (listener) => shared.onSessionLost(listener),
      // Only relays have reports.
      report: () => Promise.resolve(),
      reports: () => Promise.resolve([]),
    },
    settleIn,

    async join(start) {
      await slots.retry("lease", async (session) => {
        await session.run(leases.forgetInstances());
        await session.run(spelled(words, putGroup(key)));
        const { rows } = await session.run(spelled(words, readProgress(key)));
        await session.run(spelled(words, insertProgress(key, rows.length > 0 ? "start" : start)));
      });
    },

    async progress(partitions) {
      const rows = await read(spelled(words, readProgress(key)));
      return rows
        .map((row) => ({
          partition: integer(row, "partitionno"),
          nextId: text(row, "nextid"),
          round: integer(row, "round"),
          epoch: wholeText(row, "epoch"),
        }))
        .filter(({ partition }) => partitions.includes(partition));
    },

    counters: () => shared.looks.counters(key),
    firstDue: () => shared.looks.firstDue(key),

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
      const rows = await read(spelled(words, dueRedeliveries(key, partition, limit)));
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
        return await slots.retry("settle", async (session) => {
          const [only, ...more] = stepsOf(owner, settlement, place);
          // A single statement is its own transaction.
          if (only !== undefined && more.length === 0) return await only(session);
          await session.transaction(async (tx: Executor) => {
            if (!(await settleIn(tx, owner, settlement, place))) throw new FencedOut();
          });
          return true;
        });
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

    close: () => shared.close(),
  };
}

/** A chain of causes may be circular. */
const MOST_CAUSES = 10;

/** More bytes than any body has. */
const WHOLE = 2 ** 31;

/** A statement of a settle; false: the partition is no longer ours. */
type Step = (to: Pick<Executor, "run">) => Promise<boolean>;

/** Rolls back if the partition is no longer ours. */
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
