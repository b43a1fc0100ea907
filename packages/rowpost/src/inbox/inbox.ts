/** The consumer's side: a message takes effect once, however often it is delivered. */
import { hostname } from "node:os";
import type { Database } from "../databases/database.ts";
import { checkOptions, databaseWith, type OptionKinds, refuseUnknown } from "../runtime/check-options.ts";
import { type Clock, createSystemClock } from "../runtime/clock.ts";
import { ConfigurationError, InvalidMessageError } from "../runtime/errors.ts";
import { guardedMetrics, loggerOf } from "../runtime/guarded-ports.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { Transaction } from "../transactions/executor.ts";
import { createHandler, type HandlingOutcome } from "./handling.ts";
import { attemptOf, checkPart, note, type ReceivedMessage } from "./identity.ts";
import { createRetention, type InboxHousekeeping, type KeepHouseOptions } from "./retention.ts";
import type { HandlingRow } from "./store.ts";

/** Options of {@link createInbox}. */
export interface InboxOptions {
  /** Database of the table, to which handlers write. */
  readonly database: Database;
  /** Default consumer of {@link Inbox.handle}. 1 to 64 characters. */
  readonly consumer?: string | undefined;
  /** Default `message_inbox`. */
  readonly table?: string | undefined;
  /**
   * Database (MySQL), schema (PostgreSQL) or attached database (SQLite) of the table. Default: the
   * connection's.
   */
  readonly schema?: string | undefined;
  /** Name of this process for the column `handled_by`. Default: host and process id. */
  readonly handledBy?: string | undefined;
  /**
   * How long the inbox remembers a message, in ms. A later copy takes effect again. Default 30
   * days; at least 1 minute.
   */
  readonly keepMs?: number | undefined;
  /**
   * Longest time after which a message can come again: relay retries and slow retries, broker
   * retention, redelivery by hand. In ms; default 7 days. A shorter `keepMs` logs a warning.
   */
  readonly retryWindowMs?: number | undefined;
  /** Default: warnings and errors on standard error. */
  readonly logger?: Logger | "silent" | undefined;
  /** Receives measurements. Default: none. */
  readonly metrics?: Metrics | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** The message to handle, and its consumer. */
export interface Handling {
  /**
   * Name of the consumer, 1 to 64 characters; each handles a message once. Default: that of the
   * inbox.
   */
  readonly consumer?: string | undefined;
  /** Identity from `fromKafka(message)` and the like, or `{ type, key }`. */
  readonly message: ReceivedMessage;
}

/** Common result of {@link Inbox.handle}. */
export interface HandledMessage {
  /** The consumer of the call. */
  readonly consumer: string;
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** Attempt of this copy, if known. */
  readonly attempt: number | undefined;
}

/** This call handled the message. */
export interface Handled<Result> extends HandledMessage {
  /** Discriminates the two results. */
  readonly outcome: "handled";
  /** Result of the handler. */
  readonly result: Result;
}

/** The message was handled earlier; the handler was not called. */
export interface Duplicate extends HandledMessage {
  /** Discriminates the two results. */
  readonly outcome: "duplicate";
  /** When, by the database's clock. */
  readonly handledAt: Date;
  /** Host and process. */
  readonly handledBy: string;
}

/** The handler's `tx`: a transaction of rowpost's own for a pool or the database, else yours. */
export type HandlerTransaction<On> = On extends
  | { readonly doorbell: unknown; readonly inbox: unknown }
  | { getConnection(...given: never): unknown; end(...given: never): unknown }
  | { readonly totalCount: number; readonly idleCount: number }
  ? Transaction
  : On;

/** An inbox, as made by {@link createInbox}. */
export interface Inbox {
  /** The database of the inbox. */
  readonly database: Database;
  /** Default consumer of {@link Inbox.handle}. */
  readonly consumer: string | undefined;
  /**
   * Handles a message in a transaction: once for each consumer, however often it is delivered.
   *
   * `on` is your open transaction (as for `outbox.enqueue`), which the handler gets; or the
   * database or a pool of it, and the handler gets a transaction that commits after it. Acknowledge
   * the message to the broker after this resolves, for both outcomes; with your own transaction,
   * after its commit.
   *
   * Of several simultaneous deliveries one is handled while the others wait: they then are
   * duplicates, or one of them is handled if the first was rolled back.
   *
   * A handler that throws leaves nothing: its own transaction is rolled back, yours to a savepoint
   * before it. The error is rethrown.
   *
   * Throws, with nothing written: `InvalidMessageError` (consumer, type or key missing or
   * unstorable), `TransactionRequiredError` (no open transaction, or two parallel calls in one),
   * `DatabaseConflictError` (retriable: the wait took too long or ended in a deadlock; roll back
   * and let the message come again), `SchemaError` (no table), `PermissionError`,
   * `ConfigurationError`. `TransactionLostError`: the handler or the database ended the
   * transaction; let the message come again. `MissingAwaitError`: as in `outbox.transaction`.
   */
  handle<On, Result>(
    on: On,
    handling: Handling,
    handler: (tx: HandlerTransaction<On>) => Promise<Result>,
  ): Promise<Handled<Result> | Duplicate>;
  /**
   * Creates the table if it is missing. With `print` it changes nothing, and `sql` is for your
   * migration tool.
   */
  migrate(options?: {
    readonly print?: boolean;
  }): Promise<{ readonly applied: readonly string[]; readonly sql: string | undefined }>;
  /**
   * Deletes handlings older than `keepMs` in small batches; for cron. Resolves to the number of
   * rows. Throws the database's errors.
   */
  purge(): Promise<number>;
  /**
   * Runs {@link purge} now and periodically until `stop`. Keeps no process alive; a failure is
   * logged and retried the next time.
   */
  keepHouse(options?: KeepHouseOptions): InboxHousekeeping;
}

const DAY_MS = 86_400_000;
const LEAST_KEEP_MS = 60_000;
/** Housekeeping keeps no process alive. */
const UNREF_CLOCK = createSystemClock({ unref: true });

/**
 * Creates an inbox without connecting. Throws `ConfigurationError` for an unknown option, a name
 * that no database accepts, and times that are not whole milliseconds.
 */
export function createInbox(options: InboxOptions): Inbox {
  checkOptions("createInbox", options, KINDS);
  const { consumer: usual, database, table = "message_inbox", schema } = options;
  const keepMs = duration("keepMs", options.keepMs ?? 30 * DAY_MS, LEAST_KEEP_MS);
  const retryWindowMs = duration("retryWindowMs", options.retryWindowMs ?? 7 * DAY_MS, 0);
  const logger = loggerOf(options.logger);
  const store = database.inbox.store({ table, schema });
  const handledBy = note("handledBy", options.handledBy ?? `${hostname()}:${process.pid}`) ?? "";
  if (usual !== undefined) checkPart("consumer", usual);
  const handleOnce = createHandler({ database, store });
  const metrics = guardedMetrics(options.metrics, logger);
  const retention = createRetention({ store, logger, clock: options.clock ?? UNREF_CLOCK, keepMs, retryWindowMs });

  function rowOf(handling: Handling): HandlingRow {
    if (typeof handling !== "object" || handling === null) {
      throw new InvalidMessageError("inbox.handle takes { consumer, message } as its second argument");
    }
    const { consumer = usual, message, ...others } = handling;
    refuseUnknown("inbox.handle", others, ["consumer", "message"]);
    if (typeof message !== "object" || message === null) {
      throw new InvalidMessageError("inbox.handle: message must be an object { type, key }, such as fromKafka() gives");
    }
    return {
      consumer: checkPart("consumer", consumer),
      type: checkPart("type", message.type),
      key: checkPart("key", message.key),
      topic: note("topic", message.topic),
      messageId: note("id", message.id),
      attempt: attemptOf(message.attempt),
      handledBy,
    };
  }

  function handle<Result>(
    on: unknown,
    handling: Handling,
    handler: (tx: unknown) => Promise<Result>,
  ): Promise<Handled<Result> | Duplicate> {
    let row: HandlingRow | undefined;
    const makeRow = (): HandlingRow => {
      if (typeof handler !== "function") throw new ConfigurationError(NO_HANDLER);
      row = rowOf(handling);
      return row;
    };
    try {
      const beganMs = performance.now();
      const { outcome, watch } = handleOnce(on, makeRow, handler);
      const measure = (became: "handled" | "duplicate" | "failed"): void => {
        const who = row?.consumer ?? "";
        metrics.increment("rowpost_inbox_total", { consumer: who, outcome: became });
        metrics.observe("rowpost_inbox_duration_ms", { consumer: who }, performance.now() - beganMs);
      };
      const told = outcome.then(
        (each) => {
          const answer = tell(row as HandlingRow, each);
          measure(answer.outcome);
          return answer;
        },
        (error: unknown) => {
          measure("failed");
          throw error;
        },
      );
      return watch(told);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  return {
    database,
    consumer: usual,
    handle: handle as Inbox["handle"],
    async migrate({ print = false, ...others } = {}) {
      refuseUnknown("inbox.migrate", others, ["print"]);
      return print ? { applied: [], sql: store.print() } : { applied: await store.migrate(), sql: undefined };
    },
    purge: () => retention.purge(),
    keepHouse: (given) => retention.keepHouse(given),
  };
}

const NO_HANDLER =
  "inbox.handle takes a function as its third argument: inbox.handle(on, { consumer, message }, async (tx) => { … })";

const KINDS: OptionKinds<InboxOptions> = {
  database: databaseWith("inbox"),
  consumer: "string",
  table: "string",
  schema: "string",
  handledBy: "string",
  keepMs: "number",
  retryWindowMs: "number",
  logger: ["object", "string"],
  metrics: "object",
  clock: "object",
};

function duration(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new ConfigurationError(`createInbox: ${name} is ${value}; it must be a whole number of at least ${least}`);
}

function tell<Result>(row: HandlingRow, outcome: HandlingOutcome<Result>): Handled<Result> | Duplicate {
  const { consumer, type, key, attempt } = row;
  const about = { consumer, type, key, attempt: attempt ?? undefined };
  if ("result" in outcome) return { outcome: "handled", ...about, result: outcome.result };
  const { handledAt, handledBy } = outcome.before;
  return { outcome: "duplicate", ...about, handledAt: new Date(handledAt), handledBy };
}
