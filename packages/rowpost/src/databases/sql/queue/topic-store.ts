/** Topics on any SQL database. DDL is never part of an append, because MySQL commits with it. */
import { monthAfter, monthOf } from "../../../message/queue-id.ts";
import type { TopicSettings, TopicStore } from "../../../queue/store.ts";
import {
  deleteTopic,
  dropTable,
  insertCounters,
  insertTopic,
  isUnread,
  lockCounters,
  readTopics,
  spreadKeys,
  updateTopic,
} from "../../../queue/topics/statements.ts";
import type { Executor, QueryResult } from "../../../transactions/executor.ts";
import type { QueueSql } from "../../database.ts";
import { type Cold, spelled } from "../cold.ts";
import { integer, type Row, text } from "../rows.ts";
import type { SessionSlots } from "../session-slots.ts";
import { infoTable, monthsOfTables, recordTable, TOPIC_TABLES } from "./names.ts";

export function topicOf(row: Row): TopicSettings {
  return {
    topic: text(row, "topic"),
    partitions: integer(row, "partitions"),
    keyedPartitions: integer(row, "keyedpartitions"),
    retentionMonths: row["retentionmonths"] === null ? null : integer(row, "retentionmonths"),
  };
}

export function createTopicStore(
  { statements: { schema, topics }, words }: Pick<QueueSql, "statements" | "words">,
  slots: SessionSlots,
): TopicStore {
  const { lock, transactional } = schema();

  const changing = <T>(work: (run: (statement: Cold) => Promise<QueryResult>) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) =>
      session.transaction((tx) => work((statement) => tx.run(spelled(words, statement)))),
    );

  async function months(topic: string): Promise<number[]> {
    const { rows } = await slots.retry("housekeeping", (session) => session.run(topics.monthTables(topic)));
    return monthsOfTables(topic, rows);
  }

  async function currentMonth(): Promise<number> {
    const { rows } = await slots.retry("housekeeping", (session) => session.run(topics.now()));
    return monthOf(Number(text(rows[0] ?? {}, "nowms")));
  }

  /** The message table is made last, so a month that has it is complete wherever we die. */
  async function makeMonths(topic: string, wanted: readonly number[]): Promise<void> {
    for (const month of wanted) {
      const statements = topics.createMonth(topic, month);
      if (transactional) {
        await slots.retry("housekeeping", (session) =>
          session.transaction(async (tx) => {
            // PostgreSQL refuses one of two parallel CREATE TABLEs, even with IF NOT EXISTS.
            if (lock !== undefined) await tx.run(lock);
            await runAll(tx, statements);
          }),
        );
      } else await slots.retry("housekeeping", (session) => runAll(session, statements));
    }
  }

  async function runAll(to: Pick<Executor, "run">, statements: readonly string[]): Promise<void> {
    for (const text of statements) await to.run({ name: "createMonth", text, params: [] });
  }

  return {
    months,
    currentMonth,
    makeMonths,

    async create(topic) {
      // Before the topic, so a found topic has its tables.
      const month = await currentMonth();
      await makeMonths(topic.topic, [month, monthAfter(month)]);
      return await changing(async (run) => {
        const { affected } = await run(insertTopic(topic));
        if (affected === 0) return false;
        await run(insertCounters(topic));
        return true;
      });
    },

    async list(topic) {
      const { rows } = await slots.retry("housekeeping", (session) => session.run(spelled(words, readTopics(topic))));
      return rows.map(topicOf);
    },

    async alter(change) {
      await changing(async (run) => {
        await run(updateTopic(change));
        await run(insertCounters(change));
        // Stops appends until the commit. Messages of one key in two partitions have no order, so
        // its partition changes only once every group has read the old one.
        await run(lockCounters(change.topic));
        const { rows } = await run(isUnread(change.topic));
        if (integer(rows[0] ?? {}, "unread") === 0) await run(spreadKeys(change.topic));
      });
    },

    async remove(topic) {
      const removed = await changing(async (run) => {
        let rows = 0;
        for (const table of TOPIC_TABLES) rows += (await run(deleteTopic(table, topic))).affected;
        return rows > 0;
      });
      // Includes tables left by an earlier call that was killed here.
      const left = await months(topic);
      const tables = left.flatMap((month) => [infoTable(topic, month), recordTable(topic, month)]);
      for (const table of tables) {
        await slots.retry("housekeeping", (session) => session.run(spelled(words, dropTable(table))));
      }
      return removed || left.length > 0;
    },
  };
}
