/** The producer's side: writes messages in the transaction of the business change. */
import type { Database, StoreOptions } from "../databases/database.ts";
import { type EncodedMessage, encodeMessage, type MessageRules } from "../message/encode.ts";
import type { JsonAble, MessageLimits, NewMessage } from "../message/message.ts";
import { DECLARED_TYPE, type TypedMessage } from "../message/message-type.ts";
import { validateWith } from "../message/standard-schema.ts";
import { checkOptions, databaseWith, LAYOUT, type OptionKinds, refuseUnknown } from "../runtime/check-options.ts";
import { ConfigurationError, TransactionRequiredError } from "../runtime/errors.ts";
import { activeTraceHeaders, loadTelemetry } from "../runtime/trace-context.ts";
import type { Executor, Transaction } from "../transactions/executor.ts";
import { type ConfirmedType, createConfirm } from "./confirm-call.ts";
import type { Confirmation, ConfirmationResult } from "./confirmations.ts";
import type { EnqueueCall, EnqueueStatus } from "./message-writer.ts";

/** Handling of an existing (type, key): the call throws, or reports it. */
export type OnDuplicate = "throw" | "ignore";

/** Options of {@link createOutbox}. */
export interface OutboxOptions {
  /** Database of the messages: `mysql(…)`, `mariadb(…)`, `postgres(…)` or `sqlite(…)`. */
  readonly database: Database;
  /** Default: the table of `rowpost migrate`. */
  readonly layout?: StoreOptions["layout"] | undefined;
  /** `created_by` of messages that name none. Default `rowpost`. */
  readonly createdBy?: string | undefined;
  /** Overrides limits of the layout: lower, or higher where your columns are wider. */
  readonly limits?: Partial<MessageLimits> | undefined;
  /** Default `throw`. */
  readonly onDuplicate?: OnDuplicate | undefined;
  /**
   * Message types from `messageType` whose `confirm.consumers` `outbox.confirm` must know. Other
   * types are consumed with their first confirmation.
   */
  readonly types?: readonly ConfirmedType[] | undefined;
}

/** Options of {@link Outbox.enqueue}. */
export interface EnqueueOptions {
  /** Default: that of the outbox. */
  readonly onDuplicate?: OnDuplicate | undefined;
}

/** A message. The body of a declared type is left to its schema, which may turn it into JSON. */
export type Enqueueable<Body> = NewMessage<Body> & (TypedMessage<Body> | { readonly body: JsonAble<Body> });

/** Several messages, each with a body of its own. */
export type EnqueueableList<Bodies extends readonly unknown[]> = {
  readonly [Index in keyof Bodies]: Enqueueable<Bodies[Index]>;
};

/** An outbox, as made by {@link createOutbox}. */
export interface Outbox {
  /**
   * Writes one message in an open transaction: it is published if and only if that commits.
   *
   * `tx` is the `tx` of {@link Outbox.transaction} or your open transaction: a connection of
   * mysql2, mariadb or pg after BEGIN, a postgres.js transaction, a SQLite handle, or a transaction
   * of Drizzle, Kysely, Knex, TypeORM, MikroORM, Sequelize or Prisma.
   *
   * Throws, with nothing written: `InvalidMessageError` (an invalid field, size or body),
   * `ConfigurationError` (the table lacks a column for it), `SchemaError` (a table or column is
   * missing), `PermissionError`, `TransactionRequiredError` (a pool, an ended or absent
   * transaction, an unknown object), `DuplicateMessageError` ((type, key) exists; the transaction
   * stays usable, but on MySQL 8 and 9 roll it back soon: until it ends it blocks every other
   * enqueue into the table). Other database errors are passed on unchanged.
   */
  enqueue<Body>(tx: unknown, message: Enqueueable<Body>, options?: EnqueueOptions): Promise<EnqueueStatus>;
  /**
   * Writes several messages, one statement per 1,000 messages or 4,194,304 characters of bodies.
   * All are checked before the first is written, and a failure leaves none. Resolves to one status
   * for each, in order.
   */
  enqueue<const Bodies extends readonly unknown[]>(
    tx: unknown,
    messages: EnqueueableList<Bodies>,
    options?: EnqueueOptions,
  ): Promise<EnqueueStatus[]>;
  /**
   * Reports that messages were consumed (已消费) or failed, for consumers with access to the
   * producer's database. May be called repeatedly and in any order, before the relay has written
   * `sent` or long after: a consumed message stays consumed and is never sent again. Confirm a
   * `duplicate` of an inbox too, since the first confirmation may have been lost.
   *
   * Uses its own transactions of 500 messages each, or your transaction `tx` (as for {@link
   * Outbox.enqueue}), effective only if that commits. One result for each, in order.
   *
   * Throws `InvalidMessageError` and `ConfigurationError`, with nothing written;
   * `TransactionRequiredError`; `SchemaError` and `PermissionError`; `DatabaseConflictError` on a
   * conflict of your transaction with another: run it again.
   */
  confirm(confirmations: readonly Confirmation[], options?: { readonly tx?: unknown }): Promise<ConfirmationResult[]>;
  /**
   * Begins on the database's own pool or handle, runs `work`, commits, and wakes the relay of this
   * process; rolls back and rethrows when `work` throws. Throws `TransactionLostError` when the
   * database ended the transaction, for instance by a deadlock: run it again. Throws
   * `MissingAwaitError`, rolled back, when `work` returned before its enqueues and queries were
   * done.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The same on another pool, connection or handle of the same engine. */
  transaction<T>(on: unknown, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Wakes the relay of this process, after the commit of a transaction not begun by {@link
   * Outbox.transaction}. Otherwise the relay finds the messages at its next poll. Free without a
   * relay.
   */
  wake(): void;
}

/**
 * Messages in one INSERT. More gain nothing (measured: 100 and 1,000 cost the same per message) and
 * block the client for longer.
 */
const MESSAGES_PER_STATEMENT = 1_000;
/**
 * Characters of bodies in one INSERT: fits MariaDB's packet of 16 MiB even if each is escaped or
 * takes three bytes.
 */
const TEXT_PER_STATEMENT = 4_194_304;

/**
 * Creates an outbox without connecting. Throws `ConfigurationError` for an unknown option, an
 * invalid database or layout, limits that are not positive whole numbers, and a `createdBy` without
 * that column in the layout.
 */
export function createOutbox(options: OutboxOptions): Outbox {
  checkOptions("createOutbox", options, KINDS);
  const { database, onDuplicate = "throw" } = options;
  const layout = options.layout ?? database.defaultLayout;
  const rules = rulesOf(layout, options);
  const writer = database.messageWriter({ layout });
  void loadTelemetry();

  function enqueue(
    tx: unknown,
    given: NewMessage | readonly NewMessage[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueStatus | EnqueueStatus[]> {
    let executor: Executor;
    try {
      executor = database.executor(tx);
    } catch (error) {
      return Promise.reject(error);
    }
    const writing = write(executor, given, options);
    return executor.watch?.(writing) ?? writing;
  }

  async function write(
    executor: Executor,
    given: NewMessage | readonly NewMessage[],
    { onDuplicate: duplicates = onDuplicate, ...others }: EnqueueOptions,
  ): Promise<EnqueueStatus | EnqueueStatus[]> {
    checkOnDuplicate(duplicates);
    refuseUnknown("enqueue", others, ["onDuplicate"]);
    const messages = Array.isArray(given) ? (given as readonly NewMessage[]) : [given as NewMessage];
    const encoding = encodeAll(messages, rules);
    const later = encoding instanceof Promise;
    const call = writer.begin(executor, { later });
    const statuses = await insertAll(call, later ? await encoding : encoding, duplicates);
    if (Array.isArray(given)) return statuses;
    const [status] = statuses;
    if (status === undefined) throw new Error("the database answered an enqueue with no status");
    return status;
  }

  async function transaction<T>(first: unknown, second?: (tx: Transaction) => Promise<T>): Promise<T> {
    const work = second ?? first;
    if (typeof work !== "function") {
      throw new ConfigurationError("outbox.transaction takes a function: outbox.transaction(async (tx) => { … })");
    }
    if (second !== undefined && (first === undefined || first === null)) {
      throw new TransactionRequiredError(
        `outbox.transaction got ${String(first)} to begin on: pass a pool, connection or handle, or only the function, which begins on the outbox's own`,
      );
    }
    const result = await database.transaction(work as (tx: Transaction) => Promise<T>, second && first);
    database.doorbell.ring();
    return result;
  }

  const confirm = createConfirm({
    database,
    writer: database.confirmationWriter({ layout }),
    types: new Map((options.types ?? []).map((type) => [type.name, type])),
  });
  return {
    enqueue: enqueue as Outbox["enqueue"],
    confirm,
    transaction,
    wake: () => database.doorbell.ring(),
  };
}

const KINDS: OptionKinds<OutboxOptions> = {
  database: databaseWith("messageWriter"),
  layout: LAYOUT,
  createdBy: "string",
  limits: "object",
  onDuplicate: "string",
  types: "array",
};

function rulesOf(layout: StoreOptions["layout"], { createdBy, limits, onDuplicate }: OutboxOptions): MessageRules {
  if (onDuplicate !== undefined) checkOnDuplicate(onDuplicate);
  if (createdBy !== undefined && layout.columns.createdBy === undefined) {
    throw new ConfigurationError(
      `createdBy: the layout ${layout.name} has no column for it; leave it out, or name it as columns.createdBy`,
    );
  }
  const merged = { ...layout.limits };
  for (const [name, limit] of Object.entries(limits ?? {})) {
    if (limit === undefined) continue;
    if (!(name in merged))
      throw new ConfigurationError(`limits.${name} is not a limit (${Object.keys(merged).join(", ")})`);
    if (!Number.isInteger(limit) || limit < 1) {
      throw new ConfigurationError(`limits.${name} is ${limit}; it must be a whole number of at least 1`);
    }
    Object.assign(merged, { [name]: limit });
  }
  const { bodyType, columns, name: layoutName } = layout;
  return { limits: merged, layoutName, bodyType, columns, createdBy: createdBy ?? "rowpost" };
}

function checkOnDuplicate(value: unknown): void {
  if (value !== "throw" && value !== "ignore") {
    throw new ConfigurationError(`onDuplicate is ${String(value)}; it must be "throw" or "ignore"`);
  }
}

/**
 * Validates everything before anything is written. Returns a promise only when needed, so that the
 * first statement is sent before anything the program sends next.
 */
function encodeAll(
  messages: readonly NewMessage[],
  rules: MessageRules,
): readonly EncodedMessage[] | Promise<readonly EncodedMessage[]> {
  const loading = loadTelemetry();
  if (loading !== undefined) return loading.then(() => encodeAll(messages, rules));
  const trace = activeTraceHeaders();
  const encoded: EncodedMessage[] = [];
  for (const [index, message] of messages.entries()) {
    const validated = validateDeclared(message);
    if (validated instanceof Promise) {
      return validated.then(async (body) => {
        const one = encodeMessage(body, rules, trace);
        return [...encoded, one, ...(await encodeAll(messages.slice(index + 1), rules))];
      });
    }
    encoded.push(encodeMessage(validated, rules, trace));
  }
  return encoded;
}

/** Applies the schema of a declared type; returns other messages unchanged. */
function validateDeclared(message: NewMessage): NewMessage | Promise<NewMessage> {
  const declared = (message as Partial<TypedMessage> | null | undefined)?.[DECLARED_TYPE];
  if (declared?.schema === undefined) return message;
  const body = validateWith(declared.schema, message.body, `the body of ${declared.name}:${message.key}`);
  if (body instanceof Promise) return body.then((validated: unknown) => ({ ...message, body: validated }));
  return { ...message, body };
}

/** When a later statement fails, the rows of earlier ones are deleted. */
async function insertAll(
  call: EnqueueCall,
  messages: readonly EncodedMessage[],
  duplicates: OnDuplicate,
): Promise<EnqueueStatus[]> {
  const parts = split(messages);
  const statuses: EnqueueStatus[] = [];
  const written: EncodedMessage[] = [];
  for (const part of parts) {
    try {
      const partStatuses = await call.insert(part, { duplicates });
      statuses.push(...partStatuses);
      written.push(...part.filter((_, index) => partStatuses[index] === "enqueued"));
    } catch (error) {
      // A lost transaction needs no undo. The caller gets the first error.
      await call.undo(written, error).catch(() => undefined);
      throw written.length > 0 && error instanceof TransactionRequiredError
        ? endedWithin(written.length, error)
        : error;
    }
  }
  return statuses;
}

/** The transaction ended between two statements of one call. */
function endedWithin(written: number, cause: TransactionRequiredError): TransactionRequiredError {
  return new TransactionRequiredError(
    `the transaction of this call ended before all of its messages were written: put await before outbox.enqueue. The first ${written} went the way of that transaction, committed or rolled back with it; the others were not written.`,
    { cause },
  );
}

function split(messages: readonly EncodedMessage[]): readonly (readonly EncodedMessage[])[] {
  const parts: EncodedMessage[][] = [];
  let part: EncodedMessage[] = [];
  let characters = 0;
  for (const message of messages) {
    const full = part.length === MESSAGES_PER_STATEMENT || characters + message.body.length > TEXT_PER_STATEMENT;
    if (part.length > 0 && full) {
      parts.push(part);
      part = [];
      characters = 0;
    }
    part.push(message);
    characters += message.body.length;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}
