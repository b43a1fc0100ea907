/** The append on any SQL database: first the ids, under the counters' locks, then the rows. */
import { queueId, queueMonth } from "../../../message/queue-id.ts";
import type { AppendResult, QueuedMessage, QueueStore } from "../../../queue/store.ts";
import { describeError, RowRefusedError, TransactionRequiredError } from "../../../runtime/errors.ts";
import { grouped } from "../../../runtime/grouped.ts";
import type { Executor, Statement } from "../../../transactions/executor.ts";
import { integer, lowerCased, type Row, text } from "../rows.ts";
import { leaveOutKnown, type NumberedMessage } from "./sources.ts";
import type { QueueStatements } from "./statements.ts";

/** What a dialect knows of the errors that an append can meet on a user's connection. */
export interface AppendErrors {
  readonly isTableMissing: (error: unknown) => boolean;
  readonly isOutsideTransaction?: ((error: unknown) => boolean) | undefined;
  readonly unfitSession?: ((error: unknown) => Error | undefined) | undefined;
  readonly isRowRefused: (error: unknown) => boolean;
}

/** Characters of bodies of one INSERT. */
const TEXT_PER_STATEMENT = 1_000_000;

export function createAppend(
  { append: statements, sources }: Pick<QueueStatements, "append" | "sources">,
  errors: AppendErrors,
): QueueStore["append"] {
  return async (tx, request): Promise<AppendResult> => {
    const { topic, messages, keyedPartitions, producer, own, onSent } = request;
    const { asked, stillOpen } = await requireTransaction(tx);
    const advanced = await advance(tx, (counts) => statements.advance(topic, counts, { asked }), messages).catch(
      (error: unknown) => {
        throw meant(error, errors);
      },
    );
    if (advanced === undefined) return { problem: "unknown topic" };
    const { counters } = advanced;
    const txid = own === true ? undefined : advanced.txid;
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
    const { fresh, ids } = await leaveOutKnown(tx, (all) => sources.putSources(topic, all), numbered);
    const left = parts(fresh, (rows) => statements.rowsOfInsert(rows));
    const makeNext = () => {
      const part = left.next().value;
      return part && { ...part, statement: statements.insertMessages({ topic, ...part, producer, txid }) };
    };
    for (let next = makeNext(); next !== undefined; ) {
      const { month, rows, statement } = next;
      if (!stillOpen()) throw outsideTransaction();
      const running = tx.run(statement);
      // Awaited below; should what is made meanwhile throw, that is the error to tell.
      running.catch(() => undefined);
      // While the server writes.
      next = makeNext();
      onSent?.();
      try {
        const { appended = rows.length } = lowerCased((await running).rows[0] ?? {});
        if (Number(appended) !== rows.length) throw outsideTransaction();
      } catch (error) {
        if (errors.isTableMissing(error)) return { problem: "missing month", month };
        throw meant(error, errors);
      }
    }
    return { ids };
  };
}

function meant(error: unknown, { isOutsideTransaction, isRowRefused, unfitSession }: AppendErrors): unknown {
  if (isOutsideTransaction?.(error) === true) return outsideTransaction(error);
  if (isRowRefused(error)) {
    return new RowRefusedError(`the database takes no message like this (${describeError(error)})`, { cause: error });
  }
  return unfitSession?.(error) ?? error;
}

interface Counter {
  next: bigint;
  readonly keyedPartitions: number;
}

interface Advanced {
  /** By partition. */
  readonly counters: Map<number, Counter>;
  readonly txid: string | undefined;
}

/** The first id of each partition; undefined: a partition has no counter, nor has the topic. */
async function advance(
  tx: Executor,
  statementsFor: (counts: readonly (readonly [partition: number, messages: number])[]) => readonly Statement[],
  messages: readonly QueuedMessage[],
): Promise<Advanced | undefined> {
  const counts = new Map<number, number>();
  for (const { partition } of messages) counts.set(partition, (counts.get(partition) ?? 0) + 1);
  let rows: readonly Row[] = [];
  for (const statement of statementsFor([...counts].sort(([left], [right]) => left - right))) {
    const answer = await tx.run(statement);
    if (answer.affected === 0 && answer.rows.length === 0) return undefined;
    ({ rows } = answer);
  }
  if (rows.length !== counts.size) return undefined;
  const found = rows.map(lowerCased);
  const counters = found.map((row): [number, Counter] => {
    const partition = integer(row, "partitionno");
    const next = BigInt(text(row, "lastid")) - BigInt((counts.get(partition) ?? 0) - 1);
    return [partition, { next, keyedPartitions: integer(row, "keyedpartitions") }];
  });
  const [first] = found;
  return { counters: new Map(counters), txid: first?.["txid"] === undefined ? undefined : text(first, "txid") };
}

interface Part {
  readonly month: number;
  readonly rows: readonly NumberedMessage[];
}

/** One INSERT each. A batch across a month's border is cut where its ids are. */
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

interface Asked {
  /** It took a round trip, and nothing may have ended the transaction since. */
  readonly asked: boolean;
  /** Tells again where that is free. */
  readonly stillOpen: () => boolean;
}

async function requireTransaction(tx: Executor): Promise<Asked> {
  if (tx.inTransaction === undefined) return { asked: false, stillOpen: () => true };
  const known = tx.inTransaction();
  if (!(await (known ?? tx.askServer?.()))) throw outsideTransaction();
  return { asked: known !== true, stillOpen: () => known !== true || tx.inTransaction?.() === true };
}

function outsideTransaction(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction, or no longer in the one of this call: begin one, or leave it out, and queue.append begins its own; if you have begun one, it ended before this append: put await before queue.append. Nothing was written.",
    { cause },
  );
}
