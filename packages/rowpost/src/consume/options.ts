/** What every consumer may be told, and what it is told by default. */
import type { ReceivedMessage } from "../inbox/identity.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { awayBy } from "../runtime/away.ts";
import { backoffMs } from "../runtime/backoff.ts";
import { checkOptions, type OptionKinds, oneOf, refuseUnknown } from "../runtime/check-options.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { ConfigurationError } from "../runtime/errors.ts";
import { guardedMetrics, loggerOf } from "../runtime/guarded-ports.ts";
import {
  checkListeners,
  createHandlingReports,
  type HandlingListeners,
  type HandlingReports,
} from "../runtime/handling-reports.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { wholeNumber } from "../runtime/whole-number.ts";
import type { Transaction } from "../transactions/executor.ts";
import type { DeliveredMessage } from "./message.ts";

/** What a handler gets beside the message. */
export interface HandlerContext<Raw, Tx> {
  /** Open; what is written in it is committed with the inbox's row, or not at all. */
  readonly tx: Tx;
  /** Aborted when `handlerTimeoutMs` is over, or `drainTimeoutMs` of a close. */
  readonly signal: AbortSignal;
  /** The message as the client gave it. */
  readonly raw: Raw;
}

/**
 * Called for each message once: not for one that was handled before. The message is handled when
 * its promise has resolved and the transaction has committed; a throw rolls back.
 */
export type Handler<Raw, Tx> = (message: DeliveredMessage, context: HandlerContext<Raw, Tx>) => unknown;

/** How often a message is tried, and how long it waits in between. */
export interface HandlerRetry {
  /** Calls of the handler for one delivery. Default 5; `Infinity` never gives up. */
  readonly maxAttempts?: number | undefined;
  /** At most so long after the first, in milliseconds; then twice that, and so on. Default 200. */
  readonly baseMs?: number | undefined;
  /**
   * And never longer than this, in milliseconds; also the pause before a message goes back to a
   * broker that would bring it again at once. Default 5,000.
   */
  readonly maxMs?: number | undefined;
}

/**
 * A message that cannot be handled: it has no identity (`MissingIdentityError`), or its handler has
 * failed as often as it may. The message counts as handled when this has resolved.
 */
export type Park<Raw> = (raw: Raw, error: unknown) => unknown;

/** Options of every consumer. */
export interface ConsumeOptions<Raw, Tx = Transaction> {
  /**
   * Made with the name of its `consumer`; its table has to be there. `"none"`: for a handler that
   * takes no harm from being called again for what it has handled; without `transaction` it gets no
   * `tx` then.
   */
  readonly inbox: Inbox | "none";
  /**
   * Type and key of a message that another program has published. Default: its headers
   * `rowpost-type` and `rowpost-key`.
   */
  readonly identity?: ((raw: Raw) => ReceivedMessage) | undefined;
  /** What a message does. */
  readonly handler: Handler<Raw, Tx>;
  /**
   * The transaction that each message is handled in, for an ORM:
   * `(work) => prisma.$transaction(work)`. It commits before its promise resolves. Default: one of
   * the inbox's database.
   */
  readonly transaction?: (<Result>(work: (tx: Tx) => Promise<Result>) => Promise<Result>) | undefined;
  /** Handlers that run at once. Default 10. */
  readonly concurrency?: number | undefined;
  /**
   * Messages for which this gives the same text are handled one after the other, in the order in
   * which they came; undefined: beside all others. Default: the ordering key, else the message key.
   */
  readonly orderBy?: ((message: DeliveredMessage) => string | undefined) | undefined;
  /** After a handler has thrown. Meanwhile later messages of its key wait. */
  readonly retry?: HandlerRetry | undefined;
  /**
   * Whether an error of the handler says that what it calls is away, which is not the message's
   * fault: the try is not counted, and the message waits here, with those of its key. Where ten in
   * a row of a message type met it, all of that type rest, and one at a time is tried until one
   * goes well. An error that a message meets again while others of its type went well counts.
   * Default: `UnavailableError`, and connections that could not be made or broke. A webhook's
   * sender waits for its answer, so nothing rests there.
   */
  readonly isUnavailable?: ((error: unknown) => boolean) | undefined;
  /**
   * A call of the handler that takes longer than this, in milliseconds, is a failed try: `signal`
   * is aborted, its transaction is rolled back, and how it ends later is logged and ignored. With
   * `transaction` the try ends when the handler does, because an ORM's `tx` stays usable after its
   * rollback and may write to somebody else's transaction. Default: no limit.
   */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * A message that is handled for longer than this, its transaction included, is told in the log,
   * and again when the time has doubled, in milliseconds. Nothing is cut: what a handler has under
   * way may still commit. Default 60,000; `Infinity`: never.
   */
  readonly warnAfterMs?: number | undefined;
  /** How long `close` waits for handlers, in milliseconds. Default 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /** Default: warnings and errors on standard error. */
  readonly logger?: Logger | "silent" | undefined;
  /** Takes what is measured. Default: nothing is measured. */
  readonly metrics?: Metrics | undefined;
  /** Told of each message that was handled, and of each attempt that failed. */
  readonly on?: HandlingListeners | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** What a broker does with a message that is not handled, beside {@link Park}. */
export type Unhandled = "redeliver" | "dead-letter";

export interface WorkSettings<Raw> {
  /** Undefined: none. */
  readonly inbox: Inbox | undefined;
  readonly identity: ((raw: Raw) => ReceivedMessage) | undefined;
  readonly handler: Handler<Raw, never>;
  readonly transaction: ((work: (tx: never) => Promise<unknown>) => Promise<unknown>) | undefined;
  readonly concurrency: number;
  readonly orderBy: (message: DeliveredMessage) => string | undefined;
  readonly unhandled: Unhandled | Park<Raw>;
  readonly maxAttempts: number;
  readonly isUnavailable: (error: unknown) => boolean;
  readonly pauseMs: number;
  readonly handlerTimeoutMs: number | undefined;
  readonly warnAfterMs: number;
  readonly drainTimeoutMs: number;
  /** Messages in memory, and the time for an opening, of the consumers that have these options. */
  readonly prefetch: number;
  readonly openWithinMs: number;
  /** What the broker is called in spans, and who handles, there and in metrics. */
  readonly system: string;
  readonly consumer: string;
  /** Where messages come from that do not say their topic. */
  readonly source: string;
  readonly reports: HandlingReports;
  readonly logger: Logger;
  readonly clock: Clock;
  retryInMs(attempt: number): number;
}

/** Kinds of the options that one consumer has beside those of all. */
export type OwnKinds<Options> = OptionKinds<Omit<Options, keyof ConsumeOptions<never> | "unhandled">>;

/** With the defaults. Throws `ConfigurationError`. `own`: the options of this consumer alone. */
export function workSettings<Raw, Tx>(
  what: string,
  options: ConsumeOptions<Raw, Tx> & {
    readonly unhandled?: Unhandled | Park<Raw> | undefined;
    readonly prefetch?: number | undefined;
    readonly connectTimeoutMs?: number | undefined;
  },
  own: OptionKinds<Record<string, unknown>>,
  defaults: {
    readonly maxAttempts?: number;
    readonly concurrency?: number;
    readonly noDeadLetters?: true;
    readonly source?: string;
    readonly mostPrefetch?: number;
  } = {},
): WorkSettings<Raw> {
  const { inbox, handler, retry = {}, unhandled = "redeliver" } = options;
  checkOptions<object>(what, options, { ...(inbox === "none" ? { ...KINDS, inbox: "string" } : KINDS), ...own });
  if (typeof handler !== "function") {
    throw new ConfigurationError(`${what} takes a handler: async (message, { tx, signal, raw }) => { … }`);
  }
  if (inbox !== "none" && inbox.consumer === undefined) {
    throw new ConfigurationError(`${what}: give the inbox its name, createInbox({ database, consumer: "points" })`);
  }
  if (typeof unhandled !== "function") {
    oneOf(`${what}: unhandled`, unhandled, defaults.noDeadLetters ? ["redeliver"] : ["redeliver", "dead-letter"]);
  }
  checkListeners(what, options.on);
  const concurrency = wholeNumber(`${what}: concurrency`, options.concurrency ?? defaults.concurrency ?? 10, 1);
  const { connectTimeoutMs = 10_000, prefetch = 4 * concurrency } = options;
  const logger = loggerOf(options.logger);
  const consumer = (inbox === "none" ? undefined : inbox.consumer) ?? what;
  const metrics = guardedMetrics(options.metrics, logger);
  return {
    inbox: inbox === "none" ? undefined : inbox,
    identity: options.identity,
    handler,
    transaction: options.transaction as WorkSettings<Raw>["transaction"],
    unhandled,
    concurrency,
    prefetch: wholeNumber(`${what}: prefetch`, prefetch, 1, defaults.mostPrefetch),
    openWithinMs: wholeNumber(`${what}: connectTimeoutMs`, connectTimeoutMs, 1),
    orderBy: options.orderBy ?? (({ orderingKey, key }) => orderingKey ?? key),
    isUnavailable: awayBy(logger, options.isUnavailable),
    handlerTimeoutMs:
      options.handlerTimeoutMs === undefined
        ? undefined
        : wholeNumber(`${what}: handlerTimeoutMs`, options.handlerTimeoutMs, 1),
    warnAfterMs:
      options.warnAfterMs === Infinity
        ? Infinity
        : wholeNumber(`${what}: warnAfterMs`, options.warnAfterMs ?? 60_000, 1),
    drainTimeoutMs: wholeNumber(`${what}: drainTimeoutMs`, options.drainTimeoutMs ?? 30_000, 0),
    consumer,
    logger,
    source: defaults.source ?? "",
    system: what.slice("consume".length).toLowerCase(),
    reports: createHandlingReports({ consumer, logger, metrics, on: options.on }),
    clock: options.clock ?? systemClock,
    ...retrySettings(`${what}: retry`, retry, defaults.maxAttempts),
  };
}

function retrySettings(
  what: string,
  retry: HandlerRetry,
  byDefault = 5,
): Pick<WorkSettings<never>, "maxAttempts" | "pauseMs" | "retryInMs"> {
  refuseUnknown(what, retry, ["maxAttempts", "baseMs", "maxMs"]);
  const maxMs = wholeNumber(`${what}.maxMs`, retry.maxMs ?? 5_000, 0);
  const baseMs = wholeNumber(`${what}.baseMs`, retry.baseMs ?? 200, 0);
  const { maxAttempts = byDefault } = retry;
  return {
    maxAttempts: maxAttempts === Infinity ? Infinity : wholeNumber(`${what}.maxAttempts`, maxAttempts, 1),
    pauseMs: maxMs,
    retryInMs: (attempt) => backoffMs({ attempt, baseMs, factor: 2, maxMs }),
  };
}

const KINDS = {
  inbox: { needed: true, has: "handle", from: "made by createInbox({ database, consumer }) of rowpost/inbox" },
  identity: "function",
  handler: "any",
  transaction: "function",
  concurrency: "number",
  orderBy: "function",
  retry: "object",
  isUnavailable: "function",
  handlerTimeoutMs: "number",
  warnAfterMs: "number",
  drainTimeoutMs: "number",
  logger: ["object", "string"],
  metrics: "object",
  on: "object",
  clock: "object",
  unhandled: ["string", "function"],
} as const satisfies OptionKinds<ConsumeOptions<never> & { unhandled: unknown }>;
