/** Options of a consumer and their defaults. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { checkQueueId } from "../../message/queue-errors.ts";
import { awayBy } from "../../runtime/away.ts";
import { type BackoffOptions, backoffMs } from "../../runtime/backoff.ts";
import { checkOptions, refuseUnknown } from "../../runtime/check-options.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { loggerOf } from "../../runtime/guarded-ports.ts";
import { checkListeners, type HandlingListeners } from "../../runtime/handling-reports.ts";
import type { Logger } from "../../runtime/logger.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { GroupStart } from "../store.ts";
import { checkGroup, checkTopic, instanceGroup } from "../topics/names.ts";
import type { ConsumedMessage, HandedOut } from "./message.ts";

/** Second argument of a handler. */
export interface QueueHandlerContext {
  /** With `transactional`: the transaction that writes the record and the progress. */
  readonly tx: Transaction;
  /** Aborted when the partition was lost or the consumer's stop ran out of time. */
  readonly signal: AbortSignal;
}

/** Type of {@link QueueConsumeOptions.handler}. */
export type MessageHandler = (message: ConsumedMessage, context: QueueHandlerContext) => unknown;

/** Options of `queue.consume`. */
export interface QueueConsumeOptions {
  /** Topic to read; it must exist. */
  readonly topic: string;
  /** Every group gets every message; its members share them. */
  readonly group: string;
  /**
   * Called for each message; messages of one ordering key are handled one after the other. A
   * message is consumed when the handler returns or its promise resolves; a throw is a failed
   * attempt.
   */
  readonly handler: MessageHandler;
  /**
   * Message types of the group; others are skipped with a record. All members must give the same
   * list. Default: every message.
   */
  readonly types?: readonly string[] | undefined;
  /** Handlers that run at once in this member. Default 10; with `transactional` one a partition. */
  readonly concurrency?: number | undefined;
  /** Messages read at once from a partition, at most 10,000. Default 200. */
  readonly batchSize?: number | undefined;
  /**
   * Commits the handler's writes through `context.tx` together with the record and the progress, so
   * a crash repeats nothing. Default false: at least once.
   */
  readonly transactional?: boolean | undefined;
  /** One record for each message (default), or one for a whole batch without failures. */
  readonly records?: "each" | "batch" | undefined;
  /**
   * Every instance gets every message, in a group of its own, `group@instance`. The name must
   * survive a restart, to continue where the instance was, and differ between running processes,
   * such as the host's or the pod's name. `queue.deleteGroup` removes the group of an instance that
   * is gone.
   */
  readonly broadcast?: { readonly instance: string } | undefined;
  /**
   * Where a new group begins. Default `start`; with `broadcast` `end`, because messages from before
   * its instance existed are not for it. A known group continues where it was.
   */
  readonly from?: GroupStart | undefined;
  /**
   * Retry of failed attempts. Default: 40 attempts, from 1 s doubled up to 10 min, with full
   * jitter: 2.6 hours on average.
   */
  readonly retry?:
    | { readonly maxAttempts?: number; readonly baseMs?: number; readonly factor?: number; readonly maxMs?: number }
    | undefined;
  /**
   * Decides whether an error means that a service the handler calls is away, which is not the
   * message's fault. The attempt is not counted, and the message waits with those of its ordering
   * key. After ten such errors in a row of one message type, the whole type rests, and one message
   * at a time is tried until one succeeds. An error that a message meets again while others of its
   * type succeed counts as its own failure. Default: `UnavailableError`, and connections that could
   * not be made or broke.
   */
  readonly isUnavailable?: ((error: unknown) => boolean) | undefined;
  /**
   * Effect of a failed message on later ones of its ordering key: with `skip` (default) they
   * continue; with `block` they wait until it is consumed, dead, skipped or discarded.
   */
  readonly onFailed?: "block" | "skip" | undefined;
  /** How long a silent member keeps its partitions, in ms. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /**
   * Bounds of the adaptive polling in ms, shared by all consumers of a queue. Default 5 to 100, or
   * to 1,000 where the database notifies of appends (PostgreSQL).
   */
  readonly poll?: { readonly minMs?: number; readonly maxMs?: number } | undefined;
  /**
   * Time limit of a handler, in ms. A longer run is a failed attempt: `signal` is aborted, and the
   * late result is logged and ignored. Default: no limit. With `transactional` the transaction is
   * rolled back first, which waits for a running statement.
   */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * Logs a message whose handler runs longer than this, in ms, and again each time the duration
   * doubles. Default 60,000; `Infinity` turns it off.
   */
  readonly warnAfterMs?: number | undefined;
  /** How long `stop` waits for handlers, in ms. Default 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /** Readable name of this member. Default: host and process id, as in `shop-1:4711`. */
  readonly label?: string | undefined;
  /** Default: warnings and errors on standard error. */
  readonly logger?: Logger | "silent" | undefined;
  /** Listeners for each handled message and each failed attempt. */
  readonly on?: HandlingListeners | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
  /** For tests: runs at named points. */
  readonly onFaultPoint?: ((point: ConsumerFaultPoint) => void | Promise<void>) | undefined;
}

/** Most messages read at once. */
export const MOST_BATCH = 10_000;

/** Points at which tests kill or freeze a member. */
export type ConsumerFaultPoint = "read" | "handled" | "before settle" | "within settle" | "after settle";

/** Combines calls of the handler into one call of a batch handler. */
export interface Together {
  readonly size: number;
  readonly waitMs: number;
  /** The calls that `begin` makes synchronously form one batch. */
  readonly together: <Result>(begin: () => Result) => Result;
  /** On a stop, no batch waits for more messages. */
  readonly close: () => void;
}

export interface ConsumerSettings extends Pick<QueueConsumeOptions, "topic" | "group" | "on"> {
  readonly handler: (message: ConsumedMessage, context: QueueHandlerContext, handedOut: HandedOut) => unknown;
  /** Undefined: all. */
  readonly types: ReadonlySet<string> | undefined;
  readonly concurrency: number;
  readonly batchSize: number;
  readonly transactional: boolean;
  /** Undefined: the handler takes one message. */
  readonly batches?: Together | undefined;
  readonly records: "each" | "batch";
  readonly from: GroupStart;
  /** Last id to read; undefined: no end. */
  readonly untilId?: string | undefined;
  readonly isUnavailable: (error: unknown) => boolean;
  readonly onFailed: "block" | "skip";
  readonly maxAttempts: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly lockWaitTimeoutMs: number;
  readonly poll: { readonly minMs: number; readonly maxMs: number | undefined };
  /** Undefined: no limit. */
  readonly handlerTimeoutMs: number | undefined;
  readonly warnAfterMs: number;
  readonly drainTimeoutMs: number;
  readonly label: string;
  readonly owner: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly reach: (point: ConsumerFaultPoint) => void | Promise<void>;
  retryInMs(attempt: number): number;
}

export const CONSUME_OPTIONS: readonly string[] = [
  "topic",
  "group",
  "handler",
  "types",
  "concurrency",
  "batchSize",
  "transactional",
  "records",
  "broadcast",
  "from",
  "retry",
  "isUnavailable",
  "onFailed",
  "leaseMs",
  "poll",
  "handlerTimeoutMs",
  "warnAfterMs",
  "drainTimeoutMs",
  "label",
  "logger",
  "on",
  "clock",
  "onFaultPoint",
] satisfies readonly (keyof QueueConsumeOptions)[];

/** Applies the defaults. Throws `ConfigurationError`, `InvalidNameError`, `InvalidIdError`. */
export function consumerSettings(options: QueueConsumeOptions): ConsumerSettings {
  refuseUnknown("consume", options, CONSUME_OPTIONS);
  const { handler } = options;
  if (typeof handler !== "function") {
    throw new ConfigurationError("consume takes a handler: async (message, { tx, signal }) => { … }");
  }
  const { broadcast } = options;
  if (broadcast !== undefined) checkOptions("broadcast", broadcast, { instance: "any" });
  const { records = "each", from = broadcast === undefined ? "start" : "end", retry = {}, onFailed = "skip" } = options;
  if (onFailed !== "block" && onFailed !== "skip") {
    throw new ConfigurationError(`onFailed is ${String(onFailed)}; it must be "block" or "skip"`);
  }
  if (records !== "each" && records !== "batch") {
    throw new ConfigurationError(`records is ${String(records)}; it must be "each" or "batch"`);
  }
  checkStart(from);
  checkListeners("consume", options.on);
  const leaseMs = whole("leaseMs", options.leaseMs ?? 10_000, 1_000);
  const backoff: Omit<BackoffOptions, "attempt"> = {
    baseMs: whole("retry.baseMs", retry.baseMs ?? 1_000, 0),
    factor: retry.factor ?? 2,
    maxMs: whole("retry.maxMs", retry.maxMs ?? 600_000, 0),
  };
  return {
    topic: checkTopic(options.topic),
    group: broadcast === undefined ? checkGroup(options.group) : instanceGroup(options.group, broadcast.instance),
    handler: (message, context) => handler(message, context),
    types: typesOf(options.types),
    concurrency: whole("concurrency", options.concurrency ?? 10, 1),
    batchSize: wholeNumber("batchSize", options.batchSize ?? 200, 1, MOST_BATCH),
    transactional: options.transactional === true,
    records,
    from,
    onFailed,
    isUnavailable: awayBy(loggerOf(options.logger), options.isUnavailable),
    maxAttempts: whole("retry.maxAttempts", retry.maxAttempts ?? 40, 1),
    leaseMs,
    heartbeatMs: Math.max(100, Math.floor(leaseMs / 10)),
    // A locked row must not starve the renewal (rule: takeover-fence).
    lockWaitTimeoutMs: Math.max(250, Math.floor(leaseMs / 5)),
    poll: {
      minMs: whole("poll.minMs", options.poll?.minMs ?? 5, 1),
      maxMs: options.poll?.maxMs === undefined ? undefined : whole("poll.maxMs", options.poll.maxMs, 1),
    },
    handlerTimeoutMs:
      options.handlerTimeoutMs === undefined ? undefined : whole("handlerTimeoutMs", options.handlerTimeoutMs, 1),
    warnAfterMs: options.warnAfterMs === Infinity ? Infinity : whole("warnAfterMs", options.warnAfterMs ?? 60_000, 1),
    drainTimeoutMs: whole("drainTimeoutMs", options.drainTimeoutMs ?? 30_000, 0),
    label: options.label ?? `${hostname()}:${process.pid}`,
    owner: ownerOf(options.label),
    logger: loggerOf(options.logger),
    on: options.on,
    clock: options.clock ?? systemClock,
    reach: options.onFaultPoint ?? (() => undefined),
    retryInMs: (attempt) => backoffMs({ ...backoff, attempt }),
  };
}

/**
 * Stays in the records long after the member is gone, so it identifies the process. The columns
 * take 64 ASCII characters.
 */
function ownerOf(label: string | undefined): string {
  const part = (text: string, length: number): string => text.replace(/[^\x21-\x7e]/g, "_").slice(0, length);
  const name = label === undefined ? "" : `:${part(label, 16)}`;
  return `${part(hostname(), 26)}:${process.pid}${name}:${randomBytes(6).toString("hex")}`;
}

function checkStart(from: unknown): void {
  if (from === "start" || from === "end") return;
  if (typeof from === "object" && from !== null && "id" in from) {
    checkQueueId("from.id", from.id);
    return;
  }
  throw new ConfigurationError(`from must be "start", "end" or { id } with the id of a message as text`);
}

function typesOf(types: readonly string[] | undefined): ReadonlySet<string> | undefined {
  if (types === undefined) return undefined;
  const isList = Array.isArray(types) && types.length > 0 && types.every((type) => typeof type === "string");
  if (isList) return new Set(types);
  throw new ConfigurationError('types is a list of message types, such as ["order.created"], with one at least');
}

function whole(name: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new ConfigurationError(`${name} is ${value}; it must be a whole number of at least ${least}`);
}
