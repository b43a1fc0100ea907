import type { Room, Run } from "../../databases/sql/queue/room.ts";
import { integer, lowerCased, type Row, text, textOrNull } from "../../databases/sql/rows.ts";
import { partitionOfId, queueMonth } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { ConsumptionRecord, GroupKey } from "../store.ts";
import type { HandNote, HandResult, Removal, StoredRedelivery } from "./requests.ts";
import * as own from "./statements.ts";
import { firstUnread, monthsOf } from "./unread.ts";

/** Instance in records of changes by hand. */
const BY_HAND = "by hand";
const ERROR_LENGTH = 1_000;

export interface ChangesByHand {
  /**
   * Makes messages due now, with a record each, under the lock of the partition's progress. A dead
   * letter gets all its attempts again; messages behind another of their ordering key keep waiting.
   */
  redeliver(key: GroupKey, partition: number, ids: readonly string[], note: HandNote): Promise<HandResult[]>;
  /** Removes redeliveries with a record, under the lock of the partition's progress. */
  removeIn(tx: Executor, key: GroupKey, partition: number, removal: Removal): Promise<HandResult[]>;
  remove(key: GroupKey, partition: number, removal: Removal): Promise<HandResult[]>;
  /**
   * Passes the group's first unfinished message and fences out the partition's owner. `finished`:
   * the group is already past it.
   */
  skipHead(key: GroupKey, id: string, note: HandNote): Promise<"skipped" | "finished" | "not the first" | "no message">;
}

/** Locks the partition's progress first, as every settle does. */
export function changesByHand({ statements, ...room }: Room): ChangesByHand {
  const { redelivery, consume } = statements;

  async function lock(run: Run, key: GroupKey, partition: number): Promise<{ nextId: string; round: number }> {
    const [row] = (await run(own.lockPartition(key, partition))).rows;
    return row === undefined
      ? { nextId: "0", round: 0 }
      : { nextId: text(row, "nextid"), round: integer(row, "round") };
  }

  async function states(run: Run, key: GroupKey, partition: number, ids: readonly string[]): Promise<Locked> {
    const { rows } = await run(own.lockRedeliveries(key, partition, ids));
    return new Map(
      rows.map((row) => [
        text(row, "id"),
        {
          state: stateOf(row),
          attempt: integer(row, "attempt"),
          orderingKey: textOrNull(row, "orderingkey"),
          isBehind: integer(row, "behind") === 1,
        },
      ]),
    );
  }

  /** A month without tables takes no records. */
  async function record(run: Run, key: GroupKey, round: number, ids: readonly string[], entry: Entry): Promise<void> {
    const months = await room.months(key.topic, run);
    const error = `${entry.note.author}: ${entry.note.reason}`.slice(0, ERROR_LENGTH);
    const place = { ip: entry.note.ip, port: null, instance: BY_HAND };
    for (const month of months.filter((each) => ids.some((id) => queueMonth(id) === each))) {
      const records = ids
        .filter((id) => queueMonth(id) === month)
        .map((id) => ({
          id,
          error,
          result: entry.result,
          key: null,
          lastId: null,
          messages: 1,
          attempt: entry.attemptOf?.(id) ?? 0,
          durationMs: 0,
        }));
      await run(consume.insertRecords(key, { month, round, place, records }));
    }
  }

  async function remove(run: Run, key: GroupKey, partition: number, removal: Removal): Promise<HandResult[]> {
    const { round } = await lock(run, key, partition);
    const found = await states(run, key, partition, removal.ids);
    const may = (state: StoredRedelivery["state"] | undefined): boolean =>
      state === "dead" || (state === "waiting" && removal.from !== "dead");
    const changed = removal.ids.filter((id) => may(found.get(id)?.state));
    if (changed.length > 0) {
      await record(run, key, round, changed, removal);
      await run(redelivery.deleteRedeliveries(key, partition, changed));
      const keys = changed.flatMap((id) => found.get(id)?.orderingKey ?? []);
      if (keys.length > 0) await run(redelivery.releaseKeys(key, partition, [...new Set(keys)]));
    }
    return resultsOf(removal.ids, found, changed);
  }

  return {
    removeIn: (tx, key, partition, removal) => remove(inTransactionOf(room, tx), key, partition, removal),
    remove: (key, partition, removal) => room.transaction((run) => remove(run, key, partition, removal)),

    redeliver: (key, partition, ids, note) =>
      room.transaction(async (run) => {
        const { round } = await lock(run, key, partition);
        const found = await states(run, key, partition, ids);
        const changed = ids.filter((id) => {
          const row = found.get(id);
          // It would overtake a message of its ordering key.
          return row?.state === "dead" || (row?.state === "waiting" && !row.isBehind);
        });
        if (changed.length > 0) {
          const attemptOf = (id: string): number => -1 - (found.get(id)?.attempt ?? 0);
          await record(run, key, round, changed, { result: "redelivered", note, attemptOf });
          await run(own.redeliverNow(key, partition, changed));
        }
        return resultsOf(ids, found, changed);
      }),

    async skipHead(key, id, note) {
      const partition = partitionOfId(id);
      return await room.transaction(async (run) => {
        const { nextId, round } = await lock(run, key, partition);
        if (compareIds(id, nextId) < 0) return "finished";
        const range = { partition, fromId: nextId, toId: id };
        const months = monthsOf(await room.months(key.topic, run), range);
        const first = await firstUnread(run, months, { topic: key.topic, ...range });
        if (first?.id !== id) return first === undefined ? "no message" : "not the first";
        const next = String(BigInt(id) + 1n);
        await record(run, key, round, [id], { result: "skipped", note });
        await run(own.passHead(key, partition, { id: next, month: queueMonth(next) }));
        return "skipped";
      });
    },
  };
}

/** User handles may return aliases in capitals. */
function inTransactionOf({ within }: Pick<Room, "within">, tx: Executor): Run {
  const run = within(tx);
  return async (statement) => {
    const { affected, rows } = await run(statement);
    return { affected, rows: rows.map(lowerCased) };
  };
}

interface Entry extends Pick<ConsumptionRecord, "result"> {
  readonly note: HandNote;
  /** Default 0: nothing follows it. */
  readonly attemptOf?: (id: string) => number;
}
type Locked = Map<string, Pick<StoredRedelivery, "state" | "attempt" | "orderingKey"> & { readonly isBehind: boolean }>;
function resultsOf(ids: readonly string[], found: Locked, changed: readonly string[]): HandResult[] {
  return ids.map((id) => ({ id, result: changed.includes(id) ? "changed" : (found.get(id)?.state ?? "absent") }));
}

export function stateOf(row: Row): StoredRedelivery["state"] {
  const state = integer(row, "state");
  return state === 0 ? "waiting" : state === 1 ? "dead" : "aside";
}
