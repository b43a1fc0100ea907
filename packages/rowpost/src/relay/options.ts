/** Options of the relay: defaults and checks in one place. */
import { hostname } from "node:os";
import type { Broker } from "../brokers/broker.ts";
import type { Database, TableLayout } from "../databases/database.ts";
import type { ConfirmRule, RetryPolicy } from "../message/message-type.ts";
import { DEFAULT_RETRY_POLICY } from "../message/message-type.ts";
import {
  BROKER,
  checkOptions,
  databaseWith,
  LAYOUT,
  type OptionKinds,
  oneOf,
  refuseUnknown,
} from "../runtime/check-options.ts";
import type { Clock } from "../runtime/clock.ts";
import { systemClock } from "../runtime/clock.ts";
import { ConfigurationError } from "../runtime/errors.ts";
import { guardedMetrics, loggerOf } from "../runtime/guarded-ports.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { wholeNumber } from "../runtime/whole-number.ts";
import type { PollOptions } from "./pacing/poll-pace.ts";

/** Settings of a message type for the relay; a `messageType(...)` object is one. */
export interface RelayMessageType {
  /** The `message_type`. */
  readonly name: string;
  /** Differences from the relay's policy. Durations in ms. */
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** Consumers confirm; undefined: `sent` is final. */
  readonly confirm?: ConfirmRule | undefined;
}

/** Treatment of finished messages. */
export interface RetentionOptions {
  /** After `sent` (after `consumed` for types with confirmation). Default `keep`. */
  readonly onSent: "keep" | "archive" | "delete";
  /** Moves or deletes only messages finished for this long, in ms. Default 0. */
  readonly keepMs: number;
  /** Deletes archived messages older than this, in ms. Default: never. */
  readonly archiveForMs: number | undefined;
}

/** Named places at which tests stop, kill or delay a relay. Each is awaited. */
export type FaultPoint =
  | "scanned"
  | "beforeClaim"
  | "claimed"
  | "beforePublish"
  | "beforeAppend"
  | "appended"
  | "beforeCommit"
  | "published"
  | "beforeSettle"
  | "settled"
  | "acquired"
  | "released"
  | "heartbeat"
  | "archived";

/** Options of `createRelay`. */
export interface RelayOptions {
  /** Source of messages: `mysql(…)`, `mariadb(…)`, `postgres(…)` or `sqlite(…)`. */
  readonly database: Database;
  /** Destination: `rocketmq(…)`, `kafka(…)`, `memory()`, …, or `routes(…)` for several. */
  readonly broker: Broker;
  /**
   * Whether `stop` closes the broker once no other relay of this process uses it. With false you
   * close it; an open connection keeps the process alive. Default true.
   */
  readonly closeBroker?: boolean | undefined;
  /** Default: the layout of `rowpost migrate`, table `local_message`. */
  readonly layout?: TableLayout | undefined;
  /**
   * Retry policy and confirmation rule by message type; other types use the defaults without
   * confirmation.
   */
  readonly types?: readonly RelayMessageType[] | undefined;
  /** Default policy. */
  readonly retry?: Partial<RetryPolicy> | undefined;
  /**
   * Whether a `failed` keyed message stops later ones of its key (`block`) or not (`skip`). Default
   * `block`.
   */
  readonly onFailed?: "block" | "skip" | undefined;
  /**
   * Messages per scan and claim. Default 500: larger batches gained under 3 % and double the time
   * that a lost lease wastes.
   */
  readonly batchSize?: number | undefined;
  /**
   * Most messages of one topic in flight. All topics together hold at most twice as many, per
   * broker behind `routes`; each may use all free places. Default 4 batches.
   */
  readonly windowSize?: number | undefined;
  /**
   * Most bytes of bodies of one topic in flight, shared like `windowSize`; a single larger body
   * goes when little else is under way. Default 32 MiB.
   */
  readonly windowBytes?: number | undefined;
  /** A publish not settled after this long, in ms, has an unknown outcome. Default 10,000. */
  readonly publishTimeoutMs?: number | undefined;
  /** Length of a shard's lease, in ms; at least publishTimeoutMs + 10,000. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** Interval of renewals, in ms. Default 2,000, at most a quarter of the lease. */
  readonly heartbeatMs?: number | undefined;
  /**
   * `off` skips the mark 发送中 for speed and lists ids in flight in the lease rows (rule:
   * listed-in-flight). Default `on`.
   */
  readonly sendingMark?: "on" | "off" | undefined;
  /** Pauses between scans of the table. Default 10 to 250 ms. */
  readonly poll?: Partial<PollOptions> | undefined;
  /** Treatment of finished messages. Default: they stay. */
  readonly retention?: Partial<RetentionOptions> | undefined;
  /** Time for messages in flight at `stop`, in ms. Default publishTimeoutMs + 5,000. */
  readonly drainTimeoutMs?: number | undefined;
  /** Interval of housekeeping, in ms. Default 1,000. */
  readonly housekeepingMs?: number | undefined;
  /**
   * Recoveries since the last settle after which a message is sent alone (`suspectAfter`), and
   * after which it fails (`failAfter`) (rule: crash-counting). Default 3 and 10.
   */
  readonly suspectAfter?: number | undefined;
  /** See `suspectAfter`. */
  readonly failAfter?: number | undefined;
  /** Readable name of this instance. Default host:pid. */
  readonly label?: string | undefined;
  /** Default: warnings and errors on standard error. `silent`: none. */
  readonly logger?: Logger | "silent" | undefined;
  /** Default: no metrics. `createMetricsRegistry()` keeps them as Prometheus text. */
  readonly metrics?: Metrics | undefined;
  /** For tests. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** For tests. */
  readonly onFaultPoint?: ((point: FaultPoint) => void | Promise<void>) | undefined;
}

/** {@link RelayOptions} with every default filled in. */
export interface RelaySettings {
  readonly closeBroker: boolean;
  readonly batchSize: number;
  readonly windowSize: number;
  readonly windowBytes: number;
  readonly publishTimeoutMs: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly sendingMark: "on" | "off";
  readonly poll: PollOptions;
  readonly retention: RetentionOptions;
  readonly drainTimeoutMs: number;
  readonly housekeepingMs: number;
  readonly suspectAfter: number;
  readonly failAfter: number;
  readonly onFailed: "block" | "skip";
  readonly label: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly reach: (point: FaultPoint) => void | Promise<void>;
  /** Longest backoff of any type. */
  readonly longestBackoffMs: number;
  policyOf(type: string): RetryPolicy;
  confirmOf(type: string): ConfirmRule | undefined;
}

/**
 * A lease must exceed the publish timeout by this: 1 s of adapter grace, the settle and a margin.
 */
const LEASE_HEADROOM_MS = 10_000;

const WINDOW_BYTES = 32 * 1_048_576;

const KINDS: OptionKinds<RelayOptions> = {
  database: databaseWith("relayStore"),
  broker: BROKER,
  closeBroker: "boolean",
  layout: LAYOUT,
  types: "array",
  retry: "object",
  onFailed: "string",
  batchSize: "number",
  windowSize: "number",
  windowBytes: "number",
  publishTimeoutMs: "number",
  leaseMs: "number",
  heartbeatMs: "number",
  sendingMark: "string",
  poll: "object",
  retention: "object",
  drainTimeoutMs: "number",
  housekeepingMs: "number",
  suspectAfter: "number",
  failAfter: "number",
  label: "string",
  logger: ["object", "string"],
  metrics: "object",
  clock: "object",
  onFaultPoint: "function",
};
const POLL_KINDS: OptionKinds<PollOptions> = { minMs: "number", maxMs: "number" };
const RETENTION_KINDS: OptionKinds<RetentionOptions> = { onSent: "string", keepMs: "number", archiveForMs: "number" };

/** Throws `ConfigurationError` where the option types are violated. */
function checkShape(options: RelayOptions): void {
  checkOptions("createRelay", options, KINDS);
  const { retry = {}, poll = {}, retention = {}, logger } = options;
  refuseUnknown("createRelay, retry", retry, Object.keys(DEFAULT_RETRY_POLICY));
  checkOptions("createRelay, poll", poll, POLL_KINDS);
  checkOptions("createRelay, retention", retention, RETENTION_KINDS);
  oneOf("createRelay: onFailed", options.onFailed, [undefined, "block", "skip"]);
  oneOf("createRelay: sendingMark", options.sendingMark, [undefined, "on", "off"]);
  oneOf("createRelay: retention.onSent", retention.onSent, [undefined, "keep", "archive", "delete"]);
  if (typeof logger === "string") oneOf("createRelay: logger", logger, ["silent"]);
  for (const type of options.types ?? []) {
    if (typeof type === "object" && type !== null && typeof type.name === "string") continue;
    throw new ConfigurationError("createRelay: types takes what messageType makes, or { name, retry, confirm }");
  }
}

/** Ten years: a TIMESTAMP in a user's own table ends in 2038. */
const LONGEST_WAIT_MS = 3_650 * 86_400_000;

/** Waits become instants in the row. */
function checkWaits(what: string, { maxMs, slowRetryEveryMs }: RetryPolicy, confirm: ConfirmRule | undefined): void {
  const waits = { "retry.maxMs": maxMs, "retry.slowRetryEveryMs": slowRetryEveryMs };
  for (const [name, ms] of Object.entries(waits)) wholeNumber(`${what}: ${name}`, ms, 0, LONGEST_WAIT_MS);
  if (confirm !== undefined) wholeNumber(`${what}: confirm.withinMs`, confirm.withinMs, 1, LONGEST_WAIT_MS);
}

/** Fills in the defaults and rejects impossible options. */
export function relaySettings(options: RelayOptions): RelaySettings {
  checkShape(options);
  const batchSize = wholeNumber("batchSize", options.batchSize ?? 500, 1, 10_000);
  const publishTimeoutMs = wholeNumber("publishTimeoutMs", options.publishTimeoutMs ?? 10_000, 10, 600_000);
  const leaseMs = wholeNumber(
    "leaseMs",
    options.leaseMs ?? Math.max(30_000, publishTimeoutMs + LEASE_HEADROOM_MS),
    100,
    3_600_000,
  );
  if (leaseMs < publishTimeoutMs + headroomMs(publishTimeoutMs)) {
    throw new ConfigurationError(
      `leaseMs is ${leaseMs} but must be at least publishTimeoutMs + ${headroomMs(publishTimeoutMs)} = ${publishTimeoutMs + headroomMs(publishTimeoutMs)}: ` +
        "a publish must end before another relay may take its shard; raise leaseMs or lower publishTimeoutMs",
    );
  }
  const policies = new Map((options.types ?? []).map((type) => [type.name, type]));
  const logger = loggerOf(options.logger);
  const base: RetryPolicy = { ...DEFAULT_RETRY_POLICY, ...options.retry };
  const policyByType = new Map([...policies].map(([name, type]) => [name, { ...base, ...type.retry }]));
  checkWaits("createRelay", base, undefined);
  for (const [name, policy] of policyByType)
    checkWaits(`createRelay: message type ${name}`, policy, policies.get(name)?.confirm);
  return {
    closeBroker: options.closeBroker ?? true,
    batchSize,
    windowSize: wholeNumber("windowSize", options.windowSize ?? batchSize * 4, 1, 100_000),
    windowBytes: wholeNumber("windowBytes", options.windowBytes ?? WINDOW_BYTES, 1, Number.MAX_SAFE_INTEGER),
    publishTimeoutMs,
    leaseMs,
    heartbeatMs: wholeNumber(
      "heartbeatMs",
      options.heartbeatMs ?? Math.min(2_000, Math.floor(leaseMs / 4)),
      10,
      Math.floor(leaseMs / 4),
    ),
    sendingMark: options.sendingMark ?? "on",
    poll: { minMs: options.poll?.minMs ?? 10, maxMs: options.poll?.maxMs ?? 250 },
    retention: {
      onSent: options.retention?.onSent ?? "keep",
      keepMs: options.retention?.keepMs ?? 0,
      archiveForMs: options.retention?.archiveForMs,
    },
    drainTimeoutMs: wholeNumber("drainTimeoutMs", options.drainTimeoutMs ?? publishTimeoutMs + 5_000, 0, 3_600_000),
    housekeepingMs: wholeNumber("housekeepingMs", options.housekeepingMs ?? 1_000, 10, 3_600_000),
    suspectAfter: wholeNumber("suspectAfter", options.suspectAfter ?? 3, 1, 1_000),
    failAfter: wholeNumber("failAfter", options.failAfter ?? 10, 2, 10_000),
    onFailed: options.onFailed ?? "block",
    label: options.label ?? `${hostname()}:${process.pid}`,
    logger,
    metrics: guardedMetrics(options.metrics, logger),
    clock: options.clock ?? systemClock,
    reach: options.onFaultPoint ?? nothing,
    longestBackoffMs: Math.max(base.maxMs, ...[...policyByType.values()].map(({ maxMs }) => maxMs)),
    policyOf: (type) => policyByType.get(type) ?? base,
    confirmOf: (type) => policies.get(type)?.confirm,
  };
}

/** Headroom for short timings in tests: the publish timeout, at most {@link LEASE_HEADROOM_MS}. */
function headroomMs(publishTimeoutMs: number): number {
  return Math.min(LEASE_HEADROOM_MS, publishTimeoutMs);
}

function nothing(): void {}
