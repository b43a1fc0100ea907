/**
 * Drops whole months. A transaction that locks the progress of the topic's groups first marks the
 * month: no rewind or search goes there any more. Then the tables are dropped (on MySQL not
 * transactional), its redeliveries deleted, and the mark's owner removed. A caller that finds a
 * mark with a silent owner continues.
 */

import type { QueueSql } from "../../databases/database.ts";
import type { Cold } from "../../databases/sql/cold.ts";
import { infoTable, recordTable } from "../../databases/sql/queue/names.ts";
import { openRoom, type Room, type Run } from "../../databases/sql/queue/room.ts";
import { integer, type Row, text, textOrNull } from "../../databases/sql/rows.ts";
import { firstIdOf, monthAfter, monthOf, queueMonth } from "../../message/queue-id.ts";
import { DatabaseConflictError, DatabaseUnavailableError } from "../../runtime/errors.ts";
import { dropTable } from "../topics/statements.ts";
import type { ArchiveRow, DropBegin, DropRefusal, DropRequest, MonthCounts, NeedingGroup } from "./requests.ts";
import * as own from "./statements.ts";

const ARCHIVED_AT_ONCE = 1_000;
/** New readers queue behind a waiting DROP. */
const DROP_WAIT_MS = 2_000;

export interface Retention {
  begin(request: DropRequest): Promise<DropBegin>;
  /** Returns false when another call has taken over. */
  touch(request: DropRequest, counts?: MonthCounts, archive?: string): Promise<boolean>;
  count(topic: string, month: number): Promise<MonthCounts>;
  rows(topic: string, month: number, of: "messages" | "records"): AsyncIterable<readonly ArchiveRow[]>;
  /** Undefined: the tables are gone. After a throw this is unknown. */
  drop(topic: string, month: number): Promise<DropRefusal | undefined>;
  /** Returns the number of deleted redeliveries. */
  finish(request: DropRequest): Promise<{ readonly redeliveries: number }>;
  /** The month is as before. */
  takeBack(request: DropRequest): Promise<void>;
  /** Lets the next call continue at once. */
  release(request: DropRequest): Promise<void>;
  /** True for one caller per interval. */
  elect(topic: string, everyMs: number): Promise<boolean>;
  close(): Promise<void>;
}

/** Opens no connection before its first use. */
export function createRetention(sql: QueueSql): Retention {
  const room = openRoom(sql, { lockWaitTimeoutMs: DROP_WAIT_MS, statementTimeoutMs: 600_000 });
  const run = (statement: Cold): ReturnType<Run> => room.run(statement, "settle");
  const count = async (table: string): Promise<number> =>
    integer((await room.read(own.countRows(table)))[0] ?? {}, "n");

  return room.plainly<Retention>({
    begin: (request) => room.transaction((by) => begin(room, by, request)),
    touch: async (request, counts, archive) => (await run(own.touchMark(request, counts, archive))).affected === 1,

    async count(topic, month) {
      return { messages: await count(infoTable(topic, month)), records: await count(recordTable(topic, month)) };
    },

    async *rows(topic, month, of) {
      let last: ArchiveRow = {};
      for (;;) {
        const statement =
          of === "messages"
            ? own.archiveMessages(infoTable(topic, month), last, ARCHIVED_AT_ONCE)
            : own.archiveRecords(recordTable(topic, month), last, ARCHIVED_AT_ONCE);
        const rows = (await room.read(statement)).map(archiveRow);
        const end = rows.at(-1);
        if (end === undefined) return;
        yield rows;
        last = end;
      }
    },

    // While the messages' table exists, nothing has been dropped.
    async drop(topic, month) {
      for (const table of [infoTable(topic, month), recordTable(topic, month)]) {
        try {
          await room.once(dropTable(table));
        } catch (cause) {
          // It may be gone: the mark stays, and the next call checks.
          if (cause instanceof DatabaseUnavailableError) throw cause;
          const isWhole = table === infoTable(topic, month);
          return { refused: cause instanceof DatabaseConflictError ? "in use" : "refused", isWhole, cause };
        }
      }
      return undefined;
    },

    async finish(request) {
      const { topic, month } = request;
      const { affected } = await run(own.deleteBetween("message_redelivery", topic, ...idsOf(month)));
      await run(own.finishMark(request, affected));
      return { redeliveries: affected };
    },

    takeBack: async (request) => void (await run(own.removeMark(request))),
    release: async (request) => void (await run(own.releaseMark(request))),
    elect: async (topic, everyMs) => (await run(own.elect(topic, everyMs))).affected === 1,
    close: () => room.close(),
  });
}

async function begin(room: Room, run: Run, request: DropRequest): Promise<DropBegin> {
  const { topic, month, force } = request;
  // Progress before marks, as in a rewind.
  const progress = await run(own.lockGroups(topic));
  const [mark] = (await run(own.lockMark(request))).rows;
  const owner = mark === undefined ? null : textOrNull(mark, "owner");
  const isThere = (await room.months(topic, run)).includes(month);
  if (mark !== undefined && owner === null && !isThere) return { refused: "gone" };
  if (owner !== null && integer(mark ?? {}, "fresh") === 1) return { refused: "busy" };
  if (mark === undefined && !isThere) return { refused: "no such month" };
  const currentMonth = monthOf(await room.nowMs(run));
  if (month >= currentMonth) return { refused: "not over", currentMonth };
  if (!force && isThere) {
    const groups = await needing(run, request, progress.rows);
    if (groups.length > 0) return { refused: "needed", groups };
  }
  // Set again if the mark is removed.
  await run(own.deleteBetween("message_milestone", topic, ...idsOf(month)));
  await run(mark === undefined ? own.insertMark(request) : own.takeMark(request));
  return { begun: true, isThere };
}

/** They have unread messages or redeliveries in it. */
async function needing(run: Run, { topic, month }: DropRequest, progress: readonly Row[]): Promise<NeedingGroup[]> {
  const groups = new Map<
    string,
    { group: string; partitions: { partition: number; nextId: string }[]; waiting: number }
  >();
  const of = (group: string) => {
    const known = groups.get(group) ?? { group, partitions: [], waiting: 0 };
    groups.set(group, known);
    return known;
  };
  for (const row of progress) {
    const partition = integer(row, "partitionno");
    const nextId = text(row, "nextid");
    if (queueMonth(nextId) > month) continue;
    const { rows } = await run(own.isUnreadFrom({ topic, month, partition, fromId: nextId }));
    if (integer(rows[0] ?? {}, "unread") === 1) of(text(row, "group_id")).partitions.push({ partition, nextId });
  }
  for (const row of (await run(own.waitingIn(topic, ...idsOf(month)))).rows) {
    of(text(row, "group_id")).waiting = integer(row, "n");
  }
  return [...groups.values()];
}

/** Lowest and highest id of a month. */
function idsOf(month: number): [string, string] {
  return [firstIdOf(month), String(BigInt(firstIdOf(monthAfter(month))) - 1n)];
}

function archiveRow(row: Row): ArchiveRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  ) as ArchiveRow;
}
