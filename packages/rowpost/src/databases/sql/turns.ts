/** Serializes work on a connection, so that no foreign statement enters a transaction. */

/** `settled` resolves when all work added before has ended, successfully or not. */
export interface Turns {
  take<T>(work: () => Promise<T>): Promise<T>;
  settled(): Promise<void>;
}

/** Failed work does not keep the next from starting. */
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
