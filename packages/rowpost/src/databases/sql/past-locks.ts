import { DatabaseConflictError } from "../../runtime/errors.ts";

/**
 * After a lock wait in vain, this many runs skip locked rows at once. Otherwise each batch with the
 * locked row costs the lock wait.
 */
const CAUTIOUS = 50;

/**
 * Runs `plain`; after a conflict, and for the next {@link CAUTIOUS} times, `pastLocked`, which
 * waits for no row.
 */
export type PastLocks = <Result>(plain: () => Promise<Result>, pastLocked: () => Promise<Result>) => Promise<Result>;

/** One per group of statements that meet the same rows. */
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
      // The other rows must not wait for one that may stay locked for minutes, nor the next batches
      // rediscover it.
      cautious = CAUTIOUS;
      return await pastLocked();
    }
  };
}
