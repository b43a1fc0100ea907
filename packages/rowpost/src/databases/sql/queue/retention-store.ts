/**
 * Dropping whole months on any SQL database. First the month is marked, in a transaction that locks
 * the progress of the topic's groups: from then on nobody rewinds to it, and no search looks into
 * it. Then the tables go, which on MySQL is no part of a transaction; then what groups would get
 * again of it; then the mark loses its owner. Whoever finds a mark whose owner is silent goes on.
 */
import { firstIdOf, monthAfter, monthOf, queueMonth } from "../../../message/queue-id.ts";
import type {
  ArchiveRow,
  DropBegin,
  DropRequest,
  NeedingGroup,
  RetentionStore,
} from "../../../queue/retention/store.ts";
import { DatabaseConflictError, DatabaseUnavailableError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import { integer, type Row, text, textOrNull } from "../rows.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { ConsumptionParts } from "./consumption-store.ts";
import { infoTable, monthsOfTables, recordTable } from "./names.ts";
import type { QueueStatements } from "./statements.ts";

type RetentionParts = Pick<ConsumptionParts, "connect" | "sharedSession" | "statements">;

/** Rows of a statement of an archive. */
const ARCHIVED_AT_ONCE = 1_000;
/** A DROP waits so long for whoever reads the table; meanwhile new readers wait behind it. */
const DROP_WAIT_MS = 2_000;

export function createRetentionStore({ connect, sharedSession, statements }: RetentionParts): RetentionStore {
  const { retention, topics } = statements;
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    connect: () => connect({ purpose: "relay", lockWaitTimeoutMs: DROP_WAIT_MS, statementTimeoutMs: 600_000 }),
  });
  const run = (statement: Parameters<Executor["run"]>[0]): ReturnType<Executor["run"]> =>
    slots.retry("housekeeping", (session) => session.run(statement));
  const count = async (table: string): Promise<number> =>
    integer((await run(retention.countRows(table))).rows[0] ?? {}, "n");

  return {
    begin: (request) =>
      slots.retry("housekeeping", (session) => session.transaction((tx) => begin(statements, tx, request))),

    touch: async (request, counts, archive) =>
      (await run(retention.touchMark(request, counts, archive))).affected === 1,

    async count(topic, month) {
      return { messages: await count(infoTable(topic, month)), records: await count(recordTable(topic, month)) };
    },

    async *rows(topic, month, of) {
      let last: ArchiveRow =
        of === "messages" ? { partition: -1, id: "0" } : { id: "0", group: "", round: -1, attempt: -1 };
      for (;;) {
        const statement =
          of === "messages"
            ? retention.archiveMessages(
                infoTable(topic, month),
                { partition: Number(last["partition"]), id: String(last["id"]) },
                ARCHIVED_AT_ONCE,
              )
            : retention.archiveRecords(
                recordTable(topic, month),
                {
                  id: String(last["id"]),
                  group: String(last["group"]),
                  round: Number(last["round"]),
                  attempt: Number(last["attempt"]),
                },
                ARCHIVED_AT_ONCE,
              );
        const rows = (await run(statement)).rows.map(archiveRow);
        const end = rows.at(-1);
        if (end === undefined) return;
        yield rows;
        last = end;
      }
    },

    // The messages first: as long as they are there, nothing has been dropped.
    async drop(topic, month) {
      for (const table of [infoTable(topic, month), recordTable(topic, month)]) {
        try {
          const statement = { name: "dropTable", text: topics.dropTable(table), params: [] };
          await slots.use("housekeeping", (session) => session.run(statement));
        } catch (cause) {
          // Without an answer it may be gone: the mark stays, and the next call looks.
          if (cause instanceof DatabaseUnavailableError) throw cause;
          const isWhole = table === infoTable(topic, month);
          return { refused: cause instanceof DatabaseConflictError ? "in use" : "refused", isWhole, cause };
        }
      }
      return undefined;
    },

    async finish(request) {
      const { topic, month } = request;
      const { affected } = await run(retention.deleteBetween("message_redelivery", topic, ...idsOf(month)));
      await run(retention.finishMark(request, affected));
      return { redeliveries: affected };
    },

    takeBack: async (request) => void (await run(retention.removeMark(request))),
    release: async (request) => void (await run(retention.releaseMark(request))),
    elect: async (topic, everyMs) => (await run(retention.elect(topic, everyMs))).affected === 1,
    close: () => slots.close(),
  };
}

async function begin(statements: QueueStatements, tx: Executor, request: DropRequest): Promise<DropBegin> {
  const { retention, topics } = statements;
  const { topic, month, force } = request;
  // Before the mark, as a rewind does: it locks the progress, then reads the marks.
  const progress = await tx.run(retention.lockGroups(topic));
  const [mark] = (await tx.run(retention.lockMark(topic, month))).rows;
  const owner = mark === undefined ? null : textOrNull(mark, "owner");
  const isThere = monthsOfTables(topic, (await tx.run(topics.monthTables(topic))).rows).includes(month);
  if (mark !== undefined && owner === null && !isThere) return { refused: "gone" };
  if (owner !== null && isTrue(mark?.["fresh"])) return { refused: "busy" };
  if (mark === undefined && !isThere) return { refused: "no such month" };
  const { rows: now } = await tx.run(topics.now());
  const currentMonth = monthOf(Number(text(now[0] ?? {}, "nowms")));
  if (month >= currentMonth) return { refused: "not over", currentMonth };
  if (!force && isThere) {
    const groups = await needing(statements, tx, request, progress.rows);
    if (groups.length > 0) return { refused: "needed", groups };
  }
  // They come again where the mark is taken back; until then a count walks.
  await tx.run(retention.deleteBetween("message_milestone", topic, ...idsOf(month)));
  await tx.run(mark === undefined ? retention.insertMark(request) : retention.takeMark(request));
  return { begun: true, isThere };
}

/** Groups that have not read it to its end, or get messages of it again. */
async function needing(
  { retention }: QueueStatements,
  tx: Executor,
  { topic, month }: DropRequest,
  progress: readonly Row[],
): Promise<NeedingGroup[]> {
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
    const { rows } = await tx.run(retention.isUnreadFrom({ topic, month, partition, fromId: nextId }));
    if (isTrue(rows[0]?.["unread"])) of(text(row, "group_id")).partitions.push({ partition, nextId });
  }
  for (const row of (await tx.run(retention.waitingIn(topic, ...idsOf(month)))).rows) {
    of(text(row, "group_id")).waiting = integer(row, "n");
  }
  return [...groups.values()];
}

/** The lowest and the highest id of a month. */
function idsOf(month: number): [string, string] {
  return [firstIdOf(month), String(BigInt(firstIdOf(monthAfter(month))) - 1n)];
}

function isTrue(value: unknown): boolean {
  return value === true || Number(value ?? 0) === 1;
}

function archiveRow(row: Row): ArchiveRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  ) as ArchiveRow;
}
