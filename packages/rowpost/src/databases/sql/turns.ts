/**
 * One thing after another on a connection: a statement of somebody else must not slip into a
 * transaction.
 */

/**
 * Work that waits its turn; `settled` resolves when all that was handed in before has ended, well
 * or badly.
 */
export interface Turns {
  take<T>(work: () => Promise<T>): Promise<T>;
  settled(): Promise<void>;
}

/** Makes a queue with nobody in it. Work that fails does not keep the next from beginning. */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return {
    take(work) {
      const result = last.then(work);
      last = result.catch(() => undefined);
      return result;
    },
    async settled() {
      await last;
    },
  };
}
