/** Working past rows that somebody holds locked. */
import { DatabaseConflictError } from "../../runtime/errors.ts";

/**
 * Times, after one that waited for a lock in vain, that locked rows are passed over at once: else
 * each batch with the locked row costs the lock wait.
 */
const CAUTIOUS = 50;

/**
 * Runs `plain`; after a conflict, and for the next {@link CAUTIOUS} times, `pastLocked`, which
 * waits for no row.
 */
export type PastLocks = <Result>(plain: () => Promise<Result>, pastLocked: () => Promise<Result>) => Promise<Result>;

/** Makes one for statements that meet the same rows. */
export function createPastLocks(): PastLocks {
  let cautious = 0;
  return async (plain, pastLocked) => {
    if (cautious > 0) {
      cautious -= 1;
      return await pastLocked();
    }
    try {
      return await plain();
    } catch (error) {
      if (!(error instanceof DatabaseConflictError)) throw error;
      // Somebody holds one of the rows, perhaps for minutes: the others must not wait for it, and
      // the next batches not find it out again.
      cautious = CAUTIOUS;
      return await pastLocked();
    }
  };
}
