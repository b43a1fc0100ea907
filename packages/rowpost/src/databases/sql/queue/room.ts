/** Sessions and statements for occasional work of the queue. */
import type { QueryResult, Statement } from "../../../transactions/executor.ts";
import type { QueueSql, SessionOptions } from "../../database.ts";
import { type Cold, spelled } from "../cold.ts";
import { inPlainWordsIfRefused } from "../plain-words.ts";
import { type Row, text } from "../rows.ts";
import { createSessionSlots, type SlotName } from "../session-slots.ts";
import { monthsOfTables } from "./names.ts";
import type { QueueStatements } from "./statements.ts";

/** Runs a statement, on a session or in a transaction. */
export type Run = (statement: Cold | Statement) => Promise<QueryResult>;

export interface Room {
  /** Statements written for each engine. */
  readonly statements: QueueStatements;
  readonly isTableMissing: (error: unknown) => boolean;
  /** On the session for this kind of work; default `scan`, which only reads. */
  readonly run: (statement: Cold | Statement, slot?: SlotName) => ReturnType<Run>;
  readonly read: (statement: Cold | Statement) => Promise<readonly Row[]>;
  /** Without a retry after a conflict. */
  readonly once: Run;
  /** Reads with several statements in sequence. */
  readonly reading: <T>(work: (run: Run) => Promise<T>) => Promise<T>;
  readonly transaction: <T>(work: (run: Run) => Promise<T>) => Promise<T>;
  readonly within: (tx: { run(statement: Statement): Promise<QueryResult> }) => Run;
  /** Months of a topic with a message table, in order. */
  readonly months: (topic: string, run?: Run) => Promise<number[]>;
  /** Epoch milliseconds of the database's clock. */
  readonly nowMs: (run?: Run) => Promise<number>;
  /** The same store, with names and reasons in ASCII if the database lacks a letter. */
  readonly plainly: <Store extends object>(store: Store) => Store;
  readonly close: () => Promise<void>;
}

export function openRoom(sql: QueueSql, options: Omit<SessionOptions, "purpose">): Room {
  const { statements, words, isTableMissing } = sql;
  const slots = createSessionSlots({
    proveLost: false,
    shared: sql.sharedSession,
    closesIdle: () => true,
    connect: () => sql.connect({ purpose: "relay", ...options }),
  });
  const within: Room["within"] = (to) => (statement) => to.run(spelled(words, statement));
  const run: Room["run"] = (statement, slot = "scan") => slots.retry(slot, (session) => within(session)(statement));
  return {
    statements,
    isTableMissing,
    run,
    within,
    read: async (statement) => (await run(statement)).rows,
    once: (statement) => slots.use("settle", (session) => within(session)(statement)),
    reading: (work) => slots.retry("scan", (session) => work(within(session))),
    transaction: (work) => slots.retry("settle", (session) => session.transaction((tx) => work(within(tx)))),
    months: async (topic, by = run) => monthsOfTables(topic, (await by(statements.topics.monthTables(topic))).rows),
    nowMs: async (by = run) => Number(text((await by(statements.topics.now())).rows[0] ?? {}, "nowms")),
    plainly: (store) => inPlainWordsIfRefused(store, { ...sql, reasonLength: 255 }),
    close: () => slots.close(),
  };
}
