/** The append on any SQL database: takes ids under the counters' locks, then inserts the rows. */
import { queueId, queueMonth } from "../../../message/queue-id.ts";
import type { AppendRequest, AppendResult, QueuedMessage, QueueStore, TopicSettings } from "../../../queue/store.ts";
import {
  DatabaseConflictError,
  describeError,
  RowpostError,
  RowRefusedError,
  SchemaError,
  TransactionRequiredError,
} from "../../../runtime/errors.ts";
import { grouped } from "../../../runtime/grouped.ts";
import type { CallParts } from "../enqueue-call.ts";
import { refusedLetter } from "../plain-words.ts";
import { integer, lowerCased, type Row, text } from "../rows.ts";
import { leaveOutKnown, type NumberedMessage } from "./sources.ts";
import type { AppendStatements, QueueStatements } from "./statements.ts";
import { type Step, type Steps, stepsIn } from "./steps.ts";
import { topicOf } from "./topic-store.ts";

/** A dialect's errors of an append on a user's connection. */
export interface AppendErrors extends Pick<CallParts, "isOutsideTransaction" | "unfitSession"> {
  readonly isTableMissing: (error: unknown) => boolean;
  readonly isRowRefused: (error: unknown) => boolean;
  readonly translateError: (error: unknown, statement: string) => unknown;
  readonly lackedLetter?: ((error: unknown) => string | undefined) | undefined;
}

const TEXT_PER_STATEMENT = 1_000_000;

export function createAppend(
  statements: Pick<QueueStatements, "append" | "sources">,
  { isOutsideTransaction, isRowRefused, isTableMissing, lackedLetter, translateError, unfitSession }: AppendErrors,
): QueueStore["beginAppend"] {
  const call: CallParts = {
    statements: { enqueue: statements.append },
    outside: outsideTransaction,
    isOutsideTransaction,
    unfitSession: (error) => (isRowRefused(error) ? undefined : unfitSession?.(error)),
  };
  const { append: write } = statements;

  function* findTopic(topic: string): Steps<TopicSettings | undefined> {
    const { rows } = yield { make: write.findTopic(topic) };
    const [row] = rows.map(inTransaction);
    return row && topicOf(row);
  }

  function* withTables<T>(steps: Steps<T>): Steps<T> {
    try {
      return yield* steps;
    } catch (error) {
      if (isTableMissing(error)) throw noTables(error);
      const isConflict = translateError(error, "append") instanceof DatabaseConflictError;
      throw isConflict && !(error instanceof RowpostError) ? counterHeld(error) : error;
    }
  }

  function* append(request: AppendRequest): Steps<AppendResult> {
    const { topic, messages, keyedPartitions } = request;
    const counters = yield* advance(write, topic, messages);
    if (counters === undefined) return { problem: "unknown topic" };
    if ([...counters.values()].some((counter) => counter.keyedPartitions !== keyedPartitions)) {
      return { problem: "stale partitions" };
    }
    const numbered = messages.map((message): NumberedMessage => {
      const counter = counters.get(message.partition);
      if (counter === undefined) throw new Error(`no counter of partition ${message.partition}`);
      const id = queueId(counter.next, message.partition);
      counter.next += 1n;
      return { id, message };
    });
    const { fresh, ids } = yield* leaveOutKnown((all) => statements.sources.putSources(topic, all), numbered);
    const missing = yield* insert(request, fresh);
    return missing === undefined ? { ids } : { problem: "missing month", month: missing };
  }

  /** Returns the month whose table is missing. */
  function* insert(
    { topic, producer, onSent }: AppendRequest,
    fresh: readonly NumberedMessage[],
  ): Steps<number | undefined> {
    const left = parts(fresh, (rows) => write.rowsOfInsert(rows));
    const makeNext = () => {
      const part = left.next().value;
      return part && { ...part, make: write.insertMessages({ topic, ...part, producer }) };
    };
    let next = makeNext();
    while (next !== undefined) {
      const { month, rows, make } = next;
      const meanwhile: Step["meanwhile"] = () => {
        next = makeNext();
        onSent?.();
      };
      try {
        const answer = yield { make, meanwhile };
        const { appended = rows.length } = lowerCased(answer.rows[0] ?? {});
        if (Number(appended) !== rows.length) throw outsideTransaction();
      } catch (error) {
        if (isTableMissing(error)) return month;
        throw refusedLetter({ rows, producer }, lackedLetter?.(error), error) ?? meant(error);
      }
    }
    return undefined;
  }

  function meant(error: unknown): unknown {
    if (error instanceof RowpostError || !isRowRefused(error)) return error;
    return new RowRefusedError(`the database takes no message like this (${describeError(error)})`, { cause: error });
  }

  return (tx, options) => {
    const run = stepsIn(tx, call, { own: options?.own === true, takesTurns: write.takesTurns });
    return {
      findTopic: (topic) => run(withTables(findTopic(topic))),
      append: (request) => run(withTables(append(request))),
    };
  };
}

function noTables(error: unknown): SchemaError {
  return new SchemaError(
    `the connection of this transaction finds no tables of the message queue (${describeError(error)}): queue.migrate() makes them, in the schema of the queue's own connections`,
    { cause: error },
  );
}

function counterHeld(error: unknown): DatabaseConflictError {
  return new DatabaseConflictError(
    `append: another transaction was in the way (${describeError(error)}). One that appends holds the counters of its partitions until it ends; roll back and run this one again`,
    { cause: error },
  );
}

/** A row of NULLs means that the call's transaction has ended. */
function inTransaction(row: Row): Row {
  if (Object.values(row).every((value) => value === null)) throw outsideTransaction();
  return lowerCased(row);
}

interface Counter {
  next: bigint;
  readonly keyedPartitions: number;
}

/** First id per partition; undefined: a partition or the topic has no counter. */
function* advance(
  statements: AppendStatements,
  topic: string,
  messages: readonly QueuedMessage[],
): Steps<Map<number, Counter> | undefined> {
  const counts = new Map<number, number>();
  for (const { partition } of messages) counts.set(partition, (counts.get(partition) ?? 0) + 1);
  let rows: readonly Row[] = [];
  for (const make of statements.advance(
    topic,
    [...counts].sort(([left], [right]) => left - right),
  )) {
    const answer = yield { make };
    if (answer.affected === 0 && answer.rows.length === 0) return undefined;
    ({ rows } = answer);
  }
  const found = rows.map(inTransaction);
  if (found.length !== counts.size) return undefined;
  const counters = found.map((row): [number, Counter] => {
    const partition = integer(row, "partitionno");
    const next = BigInt(text(row, "lastid")) - BigInt((counts.get(partition) ?? 0) - 1);
    return [partition, { next, keyedPartitions: integer(row, "keyedpartitions") }];
  });
  return new Map(counters);
}

interface Part {
  readonly month: number;
  readonly rows: readonly NumberedMessage[];
}

/** One INSERT each. A batch across two months is split at their border. */
function* parts(numbered: readonly NumberedMessage[], rowsOf: (left: number) => number): Generator<Part, undefined> {
  for (const [month, rows] of grouped(numbered, ({ id }) => queueMonth(id))) {
    for (let first = 0; first < rows.length; ) {
      const most = rows.slice(first, first + rowsOf(rows.length - first));
      let characters = 0;
      const tooLong = most.findIndex(({ message }, index) => {
        characters += message.body.length;
        return index > 0 && characters > TEXT_PER_STATEMENT;
      });
      const part = tooLong === -1 ? most : most.slice(0, tooLong);
      yield { month, rows: part };
      first += part.length;
    }
  }
}

function outsideTransaction(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction, or no longer in the one of this call: begin one, or leave it out, and queue.append begins its own; if you have begun one, it ended before this append: put await before queue.append. Nothing was written.",
    { cause },
  );
}
