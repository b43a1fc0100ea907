/** Counts, events, metrics and log lines of one relay. */
import {
  CommitUnknownError,
  DatabaseConflictError,
  DatabaseUnavailableError,
  describeError,
} from "../runtime/errors.ts";
import type { EventEmitter } from "../runtime/events.ts";
import type { EventMessage, RelayEvents } from "./events.ts";
import type { RelaySettings } from "./options.ts";
import type { Settlement } from "./publishing/settler.ts";
import type { RowNow, ScannedMessage } from "./store.ts";

/** Most log lines about one outage: each part may meet another error. */
const MOST_REASONS = 8;

/** Totals of a relay since it was made. */
export interface RelayCounts {
  /** Receipts recorded. */
  readonly sent: number;
  /** Counted attempts that will be retried. */
  readonly retried: number;
  /** Messages that became failed. */
  readonly failed: number;
  /** Given back without an attempt. */
  readonly returned: number;
  /** Writes without effect because the row was no longer ours. */
  readonly fenced: number;
  /** Outcomes not recorded before the lease ended. */
  readonly outcomesLost: number;
  /** Messages in `sending` outside any window that were brought back. */
  readonly recovered: number;
  /** Messages held back by a rule. */
  readonly suspended: number;
}

/** Failures of a part since its statements last worked. */
export interface Failing {
  /** Monotonic. */
  readonly sinceMs: number;
  readonly lastMs: number;
  /** Text of the latest one. */
  readonly error: string;
}

export interface RelayReports {
  readonly counts: RelayCounts;
  settled(settlements: readonly Settlement[]): void;
  fenced(settlement: Settlement, now: RowNow | undefined): void;
  outcomeLost(settlement: Settlement): void;
  /** The table refuses an outcome; see `SettlerEvents.onRefused`. */
  refused(settlement: Settlement, error: unknown, isHeld: boolean): void;
  failed(message: EventMessage, reason: string, slowRetryInMs: number | null): void;
  suspended(messages: readonly ScannedMessage[]): void;
  recovered(count: number): void;
  /** The first failure in a row emits an event. */
  databaseAway(part: string, error: unknown): void;
  /** A statement of this part worked. */
  databaseBack(part: string): void;
  /** Undefined: its last statement worked. */
  failing(part: string): Failing | undefined;
}

export function createRelayReports(settings: RelaySettings, events: EventEmitter<RelayEvents>): RelayReports {
  const { logger, metrics } = settings;
  const counts = {
    sent: 0,
    retried: 0,
    failed: 0,
    returned: 0,
    fenced: 0,
    outcomesLost: 0,
    recovered: 0,
    suspended: 0,
  };
  const away = new Map<string, Failing>();
  /** Reasons logged in this outage. */
  const said = new Set<string>();
  /** Logged reasons of refused texts. */
  const shortened = new Set<string>();

  function settledSent(settlement: Settlement): void {
    counts.sent += 1;
    if (events.listenerCount("sent") > 0) {
      events.emit("sent", { message: about(settlement.message.row), messageId: settlement.outcome.messageId ?? "" });
    }
  }

  function settledOther({ message: { row }, outcome }: Settlement): void {
    if (outcome.toState === "failed") {
      failed(row, outcome.failReason ?? "", outcome.nextRetryInMs);
    } else if (outcome.retryDelta === 0) {
      counts.returned += 1;
    } else {
      counts.retried += 1;
      if (events.listenerCount("retry") > 0) {
        const reason = outcome.failReason ?? "";
        events.emit("retry", { message: about(row), reason, retryInMs: outcome.nextRetryInMs ?? 0 });
      }
    }
  }

  function failed(message: EventMessage, reason: string, slowRetryInMs: number | null): void {
    counts.failed += 1;
    metrics.increment("rowpost_failed_total", { topic: message.topic });
    logger.error("a message failed", { ...about(message), reason, slowRetryInMs });
    events.emit("failed", { message: about(message), reason, slowRetryInMs });
  }

  return {
    counts,
    failed,
    settled(settlements) {
      for (const settlement of settlements) {
        if (settlement.outcome.toState === "sent") settledSent(settlement);
        else settledOther(settlement);
      }
    },
    fenced({ message: { row }, outcome }, now) {
      counts.fenced += 1;
      metrics.increment("rowpost_settle_fenced_total", { topic: row.topic });
      const state = now?.state ?? "unknown";
      const isOther = now !== undefined && now.identityHash !== row.identityHash;
      const fields = { ...about(row), outcome: outcome.toState, state };
      if (isOther)
        logger.warn(
          "an outcome was not written: the database has lost the message, and another one stands under its id",
          fields,
        );
      else logger.warn("an outcome was not written: the message is no longer this relay's", fields);
      events.emit("fenced", { id: row.id, state });
    },
    outcomeLost({ message: { row } }) {
      counts.outcomesLost += 1;
      logger.warn(
        "the lease ended before an outcome could be written; the message will be published again",
        about(row),
      );
      events.emit("outcomeLost", { message: about(row) });
    },
    refused({ message: { row }, outcome }, error, isHeld) {
      metrics.increment("rowpost_database_errors_total", { statement: "settle" });
      const reason = describeError(error);
      const fields = { ...about(row), outcome: outcome.toState, error: reason };
      if (isHeld) {
        logger.error("the table does not take the outcome of a message; trying again while the lease lives", fields);
      } else if (!shortened.has(reason) && shortened.size < MOST_REASONS) {
        shortened.add(reason);
        logger.warn("the table does not take a receipt or fail_reason as it is; writing it in ASCII or cut", fields);
      }
    },
    suspended(messages) {
      counts.suspended += messages.length;
      for (const { topic } of messages) metrics.increment("rowpost_suspended_total", { topic });
    },
    recovered(count) {
      if (count === 0) return;
      counts.recovered += count;
      metrics.increment("rowpost_recovered_total", {}, count);
      logger.info("messages that nobody watched are waiting again", { count });
      events.emit("recovered", { count });
    },
    databaseAway(part, error) {
      metrics.increment("rowpost_database_errors_total", { statement: part });
      const reason = describeError(error);
      // A cut connection and then a read-only server deserve a line each.
      if (!said.has(reason) && said.size < MOST_REASONS) {
        said.add(reason);
        const fields = { part, error: reason };
        if (error instanceof DatabaseConflictError)
          logger.warn("other transactions were in the way of a statement; trying again", fields);
        else if (isAnswer(error)) logger.error("the database refuses a statement; trying again", fields);
        else logger.error("the database does not answer; trying again", fields);
      }
      if (away.size === 0) events.emit("databaseAway", { error });
      const nowMs = settings.clock.monotonicMs();
      away.set(part, { sinceMs: away.get(part)?.sinceMs ?? nowMs, lastMs: nowMs, error: reason });
    },
    databaseBack(part) {
      if (!away.delete(part) || away.size > 0) return;
      said.clear();
      logger.info("the database answers again");
      events.emit("databaseBack", {});
    },
    failing: (part) => away.get(part),
  };
}

/** A missing right or table, or a refused row. */
export function isAnswer(error: unknown): boolean {
  const unknown = [DatabaseUnavailableError, DatabaseConflictError, CommitUnknownError];
  return !unknown.some((kind) => error instanceof kind);
}

/** Never includes the body. */
export function about(
  message: Pick<ScannedMessage, "id" | "type" | "key" | "topic">,
): EventMessage & Record<string, string> {
  return { id: message.id, type: message.type, key: message.key, topic: message.topic };
}
