/** Errors of settling a pulled message. */
import { RowpostError } from "../../runtime/errors.ts";

/**
 * The message's partition went to another member, or the group was rewound. Nothing was written;
 * the message comes again, here or there.
 */
export class PartitionLostError extends RowpostError {
  constructor(id: string, partition: number) {
    super(
      "PARTITION_LOST",
      `partition ${partition} was lost before message ${id} was settled: it comes again, and what you did with it may be done twice`,
    );
  }
}

/** The puller stopped before the message was settled; another member gets it again. */
export class PullerStoppedError extends RowpostError {
  constructor(what: string) {
    super("PULLER_STOPPED", `the puller is stopped: ${what}`);
  }
}

/** A message was settled or failed twice. The first answer holds. */
export class AlreadySettledError extends RowpostError {
  constructor(id: string, how: string) {
    super("ALREADY_SETTLED", `message ${id} was ${how} already; settle() or fail() is called once for each message`);
  }
}

/** `settleWithinMs` passed: the attempt failed, and the message comes again or is dead. */
export class SettleTooLateError extends RowpostError {
  constructor(id: string, withinMs: number) {
    super(
      "SETTLE_TOO_LATE",
      `message ${id} was not settled within ${withinMs} ms, which counts as a failed attempt; raise settleWithinMs, call message.extend(ms) in time, or receive fewer at once`,
    );
  }
}
