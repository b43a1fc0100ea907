/** Consumer groups on any SQL database: looking at them, and what people do to them. */
import { partitionOfId, queueMonth } from "../../../message/queue-id.ts";
import type {
  GroupStore,
  HandNote,
  HandResult,
  StoredGroupPartition,
  StoredRedelivery,
  Unread,
} from "../../../queue/groups/store.ts";
import type { ConsumptionRecord, GroupKey } from "../../../queue/store.ts";
import { compareIds } from "../../../runtime/compare-ids.ts";
import type { Executor, Statement } from "../../../transactions/executor.ts";
import { integer, labelWithoutLock, lowerCased, type Row, text, textOrNull } from "../rows.ts";
import { createSessionSlots, type SessionSlots } from "../session-slots.ts";
import type { ConsumptionParts } from "./consumption-store.ts";
import { GROUP_TABLES, monthsOfTables } from "./names.ts";

/** The instance in a record of what a person has decided. */
const BY_HAND = "by hand";
const ERROR_LENGTH = 1_000;

export function createGroupStore(parts: ConsumptionParts): GroupStore {
  const { statements, connect, sharedSession } = parts;
  const { groups } = statements;
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    connect: () => connect({ purpose: "relay", lockWaitTimeoutMs: 5_000 }),
  });
  const read = async (statement: Statement): Promise<readonly Row[]> =>
    (await slots.retry("scan", (session) => session.run(statement))).rows;

  return {
    async partitions(topic, group) {
      return (await read(groups.readGroups(topic, group))).map(groupPartition);
    },
    async nowMs() {
      const [row] = await read(statements.topics.now());
      return Number(text(row ?? {}, "nowms"));
    },
    months: (topic) => tableMonths(read, statements, topic),
    async unread(topic, there, range, limit) {
      const months = monthsOf(there, range);
      const first = await firstMessage(read, statements, months, { topic, ...range });
      let messages = 0;
      for (const month of months) {
        if (messages >= limit) break;
        const [row] = await read(groups.countMessages({ topic, month, ...range }, limit - messages));
        messages += integer(row ?? {}, "n");
      }
      return { messages, first };
    },
    async redeliveries(key, partition, limit) {
      const [row = {}] = await read(groups.countRedeliveries(key, partition, limit));
      const [waiting, behind] = [integer(row, "waiting"), integer(row, "behind")];
      return { waiting: waiting + behind, behind, dead: integer(row, "dead"), oldest: textOrNull(row, "oldest") };
    },
    async page(key, after, limit) {
      return (await read(groups.pageRedeliveries(key, after, limit))).map(storedRedelivery);
    },
    async setPause(key, pause) {
      const { affected } = await slots.retry("settle", (session) => session.run(groups.setPause(key, pause)));
      return affected > 0;
    },
    ...changesByHand(parts, slots),
    deleteGroup: (key, silentMs) =>
      slots.retry("settle", (session) => session.transaction((tx) => deleteGroup(tx, statements, key, silentMs))),
    close: () => slots.close(),
  };
}

/** The progress is locked first, as by every settle and takeover. */
async function deleteGroup(
  tx: Executor,
  statements: ConsumptionParts["statements"],
  key: GroupKey,
  silentMs: number,
): Promise<"deleted" | "absent" | readonly string[]> {
  const { groups, rewind } = statements;
  const progress = (await tx.run(rewind.lockProgress(key))).rows.map(lowerCased);
  if (progress.length === 0) return "absent";
  const members = (await tx.run(statements.holding(key).readInstances(silentMs))).rows.map(lowerCased);
  const living = members
    .filter((row) => integer(row, "alive") === 1)
    .map((row) => labelWithoutLock(text(row, "label")));
  if (living.length > 0) return living;
  const round = Math.max(...progress.map((row) => integer(row, "round"))) + 1;
  await tx.run(groups.putGroup(key));
  await tx.run(groups.forgetGroup(key, round));
  for (const table of GROUP_TABLES) await tx.run(groups.deleteGroup(table, key));
  return "deleted";
}

type Changes = Pick<GroupStore, "redeliver" | "remove" | "removeIn" | "skipHead">;

/** Each locks the partition's progress first, as every settle does. */
function changesByHand({ statements }: ConsumptionParts, slots: SessionSlots): Changes {
  const { groups, redelivery, consume } = statements;

  async function lock(tx: Executor, key: GroupKey, partition: number): Promise<{ nextId: string; round: number }> {
    const [found] = (await tx.run(groups.lockProgress(key, partition))).rows;
    const row = lowerCased(found ?? {});
    return found === undefined
      ? { nextId: "0", round: 0 }
      : { nextId: text(row, "nextid"), round: integer(row, "round") };
  }

  async function states(tx: Executor, key: GroupKey, partition: number, ids: readonly string[]): Promise<Locked> {
    const { rows } = await tx.run(groups.lockRedeliveries(key, partition, ids));
    return new Map(
      rows.map(lowerCased).map((row) => [
        text(row, "id"),
        {
          state: stateOf(row),
          attempt: integer(row, "attempt"),
          orderingKey: textOrNull(row, "ordering_key"),
          isBehind: integer(row, "behind") === 1,
        },
      ]),
    );
  }

  /** Of a month whose tables are gone there is nothing to keep. */
  async function record(
    tx: Executor,
    key: GroupKey,
    round: number,
    ids: readonly string[],
    entry: Entry,
  ): Promise<void> {
    const months = await tableMonths(reader(tx), statements, key.topic);
    const error = `${entry.note.author}: ${entry.note.reason}`.slice(0, ERROR_LENGTH);
    const place = { ip: entry.note.ip, port: null, instance: BY_HAND };
    for (const month of months.filter((each) => ids.some((id) => queueMonth(id) === each))) {
      const records = ids
        .filter((id) => queueMonth(id) === month)
        .map((id) => ({
          ...{ id, error, result: entry.result, key: null, lastId: null },
          ...{ messages: 1, attempt: entry.attemptOf?.(id) ?? 0, durationMs: 0 },
        }));
      await tx.run(consume.insertRecords(key, { month, round, place, records }));
    }
  }

  const removeIn: Changes["removeIn"] = async (tx, key, partition, removal) => {
    const { round } = await lock(tx, key, partition);
    const found = await states(tx, key, partition, removal.ids);
    const may = (state: StoredRedelivery["state"] | undefined): boolean =>
      state === "dead" || (state === "waiting" && removal.from !== "dead");
    const changed = removal.ids.filter((id) => may(found.get(id)?.state));
    if (changed.length > 0) {
      await record(tx, key, round, changed, removal);
      await tx.run(redelivery.deleteRedeliveries(key, partition, changed));
      const keys = changed.flatMap((id) => found.get(id)?.orderingKey ?? []);
      if (keys.length > 0) await tx.run(redelivery.releaseKeys(key, partition, [...new Set(keys)]));
    }
    return resultsOf(removal.ids, found, changed);
  };

  const inTransaction = async <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    await slots.retry("settle", (session) => session.transaction(work));

  return {
    removeIn,
    remove: (key, partition, removal) => inTransaction((tx) => removeIn(tx, key, partition, removal)),

    redeliver: (key, partition, ids, note) =>
      inTransaction(async (tx) => {
        const { round } = await lock(tx, key, partition);
        const found = await states(tx, key, partition, ids);
        const changed = ids.filter((id) => {
          const row = found.get(id);
          // What waits behind another one of its ordering key would overtake it.
          return row?.state === "dead" || (row?.state === "waiting" && !row.isBehind);
        });
        if (changed.length > 0) {
          const attemptOf = (id: string): number => -1 - (found.get(id)?.attempt ?? 0);
          await record(tx, key, round, changed, { result: "redelivered", note, attemptOf });
          await tx.run(groups.redeliverNow(key, partition, changed));
        }
        return resultsOf(ids, found, changed);
      }),

    async skipHead(key, id, note) {
      const partition = partitionOfId(id);
      return await inTransaction(async (tx) => {
        const { nextId, round } = await lock(tx, key, partition);
        if (compareIds(id, nextId) < 0) return "finished";
        const range = { partition, fromId: nextId, toId: id };
        const months = monthsOf(await tableMonths(reader(tx), statements, key.topic), range);
        const first = await firstMessage(reader(tx), statements, months, { topic: key.topic, ...range });
        if (first?.id !== id) return first === undefined ? "no message" : "not the first";
        const next = String(BigInt(id) + 1n);
        await record(tx, key, round, [id], { result: "skipped", note });
        await tx.run(groups.passHead(key, partition, { id: next, month: queueMonth(next) }));
        return "skipped";
      });
    },
  };
}

interface Entry extends Pick<ConsumptionRecord, "result"> {
  readonly note: HandNote;
  /** Default 0: nothing comes after it. */
  readonly attemptOf?: (id: string) => number;
}
type Locked = Map<string, Pick<StoredRedelivery, "state" | "attempt" | "orderingKey"> & { readonly isBehind: boolean }>;
type Read = (statement: Statement) => Promise<readonly Row[]>;
type Range = Parameters<GroupStore["unread"]>[2];

/** On handles of users aliases may come back in capitals. */
function reader(tx: Executor): Read {
  return async (statement) => (await tx.run(statement)).rows.map(lowerCased);
}

async function tableMonths(read: Read, { topics }: ConsumptionParts["statements"], topic: string): Promise<number[]> {
  const rows = await read(topics.monthTables(topic));
  return monthsOfTables(topic, rows);
}

/** Months with a table that ids of this range may lie in. */
function monthsOf(months: readonly number[], { fromId, toId }: Range): number[] {
  if (compareIds(fromId, toId) > 0) return [];
  return months.filter((month) => month >= queueMonth(fromId) && month <= queueMonth(toId));
}

async function firstMessage(
  read: Read,
  { groups }: ConsumptionParts["statements"],
  months: readonly number[],
  range: Range & { readonly topic: string },
): Promise<Unread["first"]> {
  for (const month of months) {
    const [row] = await read(groups.firstMessage({ month, ...range }));
    if (row === undefined) continue;
    return { id: text(row, "id"), key: textOrNull(row, "message_key"), type: textOrNull(row, "message_type") };
  }
  return undefined;
}

function resultsOf(ids: readonly string[], found: Locked, changed: readonly string[]): HandResult[] {
  return ids.map((id) => ({ id, result: changed.includes(id) ? "changed" : (found.get(id)?.state ?? "absent") }));
}

function stateOf(row: Row): StoredRedelivery["state"] {
  const state = integer(row, "state");
  return state === 0 ? "waiting" : state === 1 ? "dead" : "aside";
}

function storedRedelivery(row: Row): StoredRedelivery {
  return {
    id: text(row, "id"),
    partition: integer(row, "partition_no"),
    state: stateOf(row),
    attempt: integer(row, "attempt"),
    nextAttemptAt: integer(row, "behind") === 1 ? null : text(row, "next_attempt_at"),
    failReason: textOrNull(row, "fail_reason"),
    orderingKey: textOrNull(row, "ordering_key"),
    changedAt: text(row, "changed_at"),
  };
}

function groupPartition(row: Row): StoredGroupPartition {
  return {
    group: text(row, "group_id"),
    partition: integer(row, "partition_no"),
    nextId: text(row, "next_id"),
    lastId: text(row, "last_id"),
    round: integer(row, "round"),
    owner: textOrNull(row, "owner"),
    label: row["label"] === null ? null : labelWithoutLock(text(row, "label")),
    heldSince: textOrNull(row, "held_since"),
    movedMs: row["moved_ms"] === null ? null : integer(row, "moved_ms"),
    pausedAt: textOrNull(row, "paused_at"),
    pausedBy: textOrNull(row, "paused_by"),
    pauseReason: textOrNull(row, "pause_reason"),
  };
}
