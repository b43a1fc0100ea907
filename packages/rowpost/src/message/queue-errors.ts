/** Errors of inspecting the message queue and of changing its groups. */
import { RowpostError } from "../runtime/errors.ts";

/** Not a message id of the queue: a decimal string of at most 63 bits. No SQL was run. */
export class InvalidIdError extends RowpostError {
  constructor(name: string, value: unknown) {
    const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : typeof value;
    super("INVALID_ID", `${name} is ${shown}; the id of a message is a decimal text, such as "912345678901234567"`);
  }
}

/** The topic has no such consumer group. Nothing was changed. */
export class UnknownGroupError extends RowpostError {
  constructor(topic: string, group: string) {
    super(
      "UNKNOWN_GROUP",
      `topic ${topic} has no consumer group "${group}"; a group is there from its first queue.consume on`,
    );
  }
}

/** A group was not moved; the message says why. Nothing was changed. */
export class RewindRefusedError extends RowpostError {
  constructor(message: string) {
    super("REWIND_REFUSED", message);
  }
}

/**
 * A month was not dropped; `reason` and the message say why. Nothing has changed, unless the
 * message says that only the table of its records was kept.
 */
export class MonthNotDroppedError extends RowpostError {
  /** Reason, for programs. */
  readonly reason: "NEEDED" | "NOT_OVER" | "BUSY" | "NO_SUCH_MONTH" | "GONE" | "IN_USE" | "REFUSED";

  constructor(reason: MonthNotDroppedError["reason"], message: string, retriable: boolean, cause?: unknown) {
    super("MONTH_NOT_DROPPED", message, { retriable, cause });
    this.reason = reason;
  }
}

/** A month could not be archived, or its files differ from its tables. Nothing was dropped. */
export class ArchiveError extends RowpostError {
  constructor(message: string, cause?: unknown) {
    super("ARCHIVE", message, { cause, retriable: true });
  }
}

/** The request concerns a month whose tables were dropped. */
export class MonthDroppedError extends RowpostError {
  /** The dropped months, in order, such as 202611. */
  readonly months: readonly number[];

  constructor(what: string, months: readonly number[], help: string) {
    super("MONTH_DROPPED", `${what}: the tables of ${months.join(", ")} were dropped. ${help}`);
    this.months = months;
  }
}

/** Returns a valid id as a string. */
export function checkQueueId(name: string, value: unknown): string {
  if (typeof value === "string" && /^(?:0|[1-9]\d{0,18})$/.test(value) && BigInt(value) < 2n ** 63n) return value;
  throw new InvalidIdError(name, value);
}
