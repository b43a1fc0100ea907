/**
 * How fast each bulk operation may go, in the process that works on it; and that they take turns,
 * so that one of a million messages at 100 a second holds up no other.
 */

/** Paces by the ids of operations. */
export interface Paces {
  /** The one that has waited longest. */
  next(running: readonly string[]): string | undefined;
  /** Milliseconds until it may go on. */
  waitMs(id: string): number;
  /** A step begins. `rest`: it has changed so many, which at `rate` a second take their time. */
  begin(id: string, rate: number): { rest(changed: number): void };
}

/** `now`: milliseconds of a clock that never steps. */
export function createPaces(now: () => number = () => performance.now()): Paces {
  const dueAt = new Map<string, number>();
  const due = (id: string): number => dueAt.get(id) ?? Number.NEGATIVE_INFINITY;
  return {
    next(running) {
      for (const id of dueAt.keys()) if (!running.includes(id)) dueAt.delete(id);
      return running.toSorted((a, b) => (due(a) < due(b) ? -1 : Number(due(a) > due(b))))[0];
    },
    waitMs: (id) => Math.max(0, Math.ceil(due(id) - now())),
    begin(id, rate) {
      const beganAt = now();
      dueAt.set(id, beganAt);
      return { rest: (changed) => dueAt.set(id, beganAt + (changed * 1_000) / rate) };
    },
  };
}
