/** What a pulled message cannot be told any more, and why. */
import { RowpostError } from "../../runtime/errors.ts";

/**
 * The partition of the message went to another member, or the group was rewound. Nothing was
 * written of the message: it comes again, here or there.
 */
export class PartitionLostError extends RowpostError {
  constructor(id: string, partition: number) {
    super(
      "PARTITION_LOST",
      `partition ${partition} was lost before message ${id} was settled: it comes again, and what you did with it may be done twice`,
    );
  }
}

/** The puller was stopped before the message was settled: it comes again, for another member. */
export class PullerStoppedError extends RowpostError {
  constructor(what: string) {
    super("PULLER_STOPPED", `the puller is stopped: ${what}`);
  }
}

/** A message was settled, or failed, twice. What was said first holds. */
export class AlreadySettledError extends RowpostError {
  constructor(id: string, how: string) {
    super("ALREADY_SETTLED", `message ${id} was ${how} already; settle() or fail() is called once for each message`);
  }
}

/** `settleWithinMs` was over: a failed attempt, after which the message comes again, or is dead. */
export class SettleTooLateError extends RowpostError {
  constructor(id: string, withinMs: number) {
    super(
      "SETTLE_TOO_LATE",
      `message ${id} was not settled within ${withinMs} ms, which counts as a failed attempt; raise settleWithinMs, call message.extend(ms) in time, or receive fewer at once`,
    );
  }
}
