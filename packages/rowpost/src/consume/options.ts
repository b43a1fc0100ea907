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

/** Context of a handler call. */
export interface HandlerContext<Raw, Tx> {
  /** Open transaction. Writes in it are committed together with the inbox's row, or not at all. */
  readonly tx: Tx;
  /** Aborted after `handlerTimeoutMs`, or after `drainTimeoutMs` of a close. */
  readonly signal: AbortSignal;
  /** The message in the client's form. */
  readonly raw: Raw;
}

/**
 * Called once for each message, not again after it was handled. The message is handled when the
 * promise has resolved and the transaction has committed; a throw rolls back.
 */
export type Handler<Raw, Tx> = (message: DeliveredMessage, context: HandlerContext<Raw, Tx>) => unknown;

/** Tries of a message and the waits between them. */
export interface HandlerRetry {
  /** Calls of the handler in one delivery. Default 5; `Infinity` never gives up. */
  readonly maxAttempts?: number | undefined;
  /** Longest wait after the first try, in ms; doubled after each. Default 200. */
  readonly baseMs?: number | undefined;
  /**
   * Longest wait, in ms; also the pause before a message goes back to a broker that redelivers at
   * once. Default 5,000.
   */
  readonly maxMs?: number | undefined;
}

/**
 * Stores a message that cannot be handled: it has no identity (`MissingIdentityError`), or its
 * handler failed too often. It counts as handled when this has resolved.
 */
export type Park<Raw> = (raw: Raw, error: unknown) => unknown;

/** Options of every consumer. */
export interface ConsumeOptions<Raw, Tx = Transaction> {
  /**
   * Created with the name of its `consumer`; its table must exist. `"none"`: for a handler that may
   * run twice for a message; without `transaction` it then gets no `tx`.
   */
  readonly inbox: Inbox | "none";
  /**
   * Type and key of a message from another program. Default: its headers `rowpost-type` and
   * `rowpost-key`.
   */
  readonly identity?: ((raw: Raw) => ReceivedMessage) | undefined;
  /** Handles a message. */
  readonly handler: Handler<Raw, Tx>;
  /**
   * Transaction of each message, for an ORM: `(work) => prisma.$transaction(work)`. It must commit
   * before its promise resolves. Default: a transaction of the inbox's database.
   */
  readonly transaction?: (<Result>(work: (tx: Tx) => Promise<Result>) => Promise<Result>) | undefined;
  /** Most handlers at once. Default 10. */
  readonly concurrency?: number | undefined;
  /**
   * Messages with equal results are handled one after the other, in order of arrival; with
   * undefined, in parallel to all others. Default: the ordering key, else the message key.
   */
  readonly orderBy?: ((message: DeliveredMessage) => string | undefined) | undefined;
  /** Retries after a handler throws. Later messages of its key wait. */
  readonly retry?: HandlerRetry | undefined;
  /**
   * Whether a handler's error means that a service it calls is unavailable. The try is then not
   * counted, and the message and those of its key wait here. After ten such errors in a row, the
   * whole message type rests and one message at a time is tried until one succeeds. An error that a
   * message meets again while others of its type succeed counts. Default: `UnavailableError` and
   * connections that failed or broke. Not for webhooks, whose sender waits for the answer.
   */
  readonly isUnavailable?: ((error: unknown) => boolean) | undefined;
  /**
   * Time limit of a handler call, in ms. Beyond it the try has failed: `signal` is aborted, the
   * transaction is rolled back, and the call's later end is logged and ignored. With `transaction`
   * the try ends only with the handler, because an ORM's `tx` stays usable after its rollback and
   * may write to another transaction. Default: no limit.
   */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * A message handled for longer than this, in ms, transaction included, is logged, and again
   * whenever the time has doubled. Nothing is aborted, since the handler may still commit. Default
   * 60,000; `Infinity`: never.
   */
  readonly warnAfterMs?: number | undefined;
  /** How long `close` waits for handlers, in ms. Default 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /** Default: warnings and errors on standard error. */
  readonly logger?: Logger | "silent" | undefined;
  /** Receives metrics. Default: none are measured. */
  readonly metrics?: Metrics | undefined;
  /** Called for each handled message and each failed attempt. */
  readonly on?: HandlingListeners | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** What a broker does with a message that is not handled, beside {@link Park}. */
export type Unhandled = "redeliver" | "dead-letter";

export interface WorkSettings<Raw> {
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
  /** Messages in memory and the connect timeout, for consumers with these options. */
  readonly prefetch: number;
  readonly openWithinMs: number;
  /** Name of the broker in spans, and of the consumer in spans and metrics. */
  readonly system: string;
  readonly consumer: string;
  readonly source: string;
  readonly reports: HandlingReports;
  readonly logger: Logger;
  readonly clock: Clock;
  retryInMs(attempt: number): number;
}

export type OwnKinds<Options> = OptionKinds<Omit<Options, keyof ConsumeOptions<never> | "unhandled">>;

/** Applies defaults. Throws `ConfigurationError`. `own`: the options specific to this consumer. */
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
