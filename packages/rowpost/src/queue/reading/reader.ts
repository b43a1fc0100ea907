/** Reads a partition across the tables of its months. */
import { monthAfter, queueMonth } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { ConsumptionStore, StoredQueueMessage } from "../store.ts";

export type ReadStore = Pick<ConsumptionStore, "read" | "counters" | "close">;

export interface ReaderOptions {
  readonly store: Pick<ReadStore, "read">;
  /** Months that have a table, in order. */
  readonly months: () => Promise<readonly number[]>;
  readonly partition: number;
  /** First id to read. */
  readonly fromId: string;
}

export interface Reader {
  /**
   * Up to `limit` messages after the last ones; `lastId` is the counter as read before. With
   * `bodyLimit` they end before a larger body, or are that message alone without its body.
   */
  read(lastId: string, limit: number, bodyLimit?: number): Promise<StoredQueueMessage[]>;
  /** Goes back to this id. */
  readFrom(id: string): void;
}

/** Counter of a partition without any message. */
const NO_MESSAGE = 64n;

export function createReader({ store, months, partition, fromId }: ReaderOptions): Reader {
  let nextId = fromId;
  let month = 0;
  let known: readonly number[] = [];

  async function tableFrom(least: number): Promise<number | undefined> {
    const found = known.find((each) => each >= least);
    if (found !== undefined && found === least) return found;
    known = await months();
    return known.find((each) => each >= least);
  }

  return {
    readFrom(id) {
      nextId = id;
      month = 0;
    },
    async read(lastId, limit, bodyLimit) {
      if (BigInt(lastId) < NO_MESSAGE) return [];
      const lastMonth = queueMonth(lastId);
      while (compareIds(nextId, lastId) <= 0) {
        const table = await tableFrom(Math.max(month, queueMonth(nextId)));
        if (table === undefined || table > lastMonth) break;
        const rows = await store.read({ month: table, partition, fromId: nextId, toId: lastId, limit, bodyLimit });
        const taken = rows === undefined ? [] : untilLeftOut(rows);
        const last = taken.at(-1);
        // The counter, read first, is in a later month: this one is complete.
        const isAll = rows === undefined || (rows.length < limit && taken.length === rows.length);
        const isOver = table < lastMonth && isAll;
        if (rows === undefined) known = [];
        month = isOver ? monthAfter(table) : table;
        if (last !== undefined) nextId = idAfter(last.id);
        if (taken.length > 0) return taken;
        if (!isOver) break;
      }
      return [];
    },
  };
}

function untilLeftOut(rows: readonly StoredQueueMessage[]): StoredQueueMessage[] {
  const place = rows.findIndex(({ leftOutBytes }) => leftOutBytes !== undefined);
  return rows.slice(0, place === -1 ? undefined : Math.max(1, place));
}

/** The next id in any partition. */
export function idAfter(id: string): string {
  return String(BigInt(id) + 1n);
}
