/** Runs tasks, so many at once; those of one lane one after the other, in the order they came. */

interface Lanes {
  /** `lane` undefined: a lane of its own. */
  add(place: { readonly lane: string | undefined }, task: () => Promise<void>): void;
}

/** Makes lanes with nothing in them. Tasks must not reject. */
export function createLanes(concurrency: number): Lanes {
  /** What waits behind the running or ready task of its lane. */
  const behind = new Map<string, (() => Promise<void>)[]>();
  /** Up to `next` they have begun, and are let go: a task holds the body of its message. */
  let ready: ({ readonly lane: string | undefined; readonly task: () => Promise<void> } | undefined)[] = [];
  let next = 0;
  let running = 0;

  function ended(lane: string | undefined): void {
    running -= 1;
    const waiting = lane === undefined ? undefined : behind.get(lane);
    const task = waiting?.shift();
    if (task !== undefined) ready.push({ lane, task });
    else if (lane !== undefined) behind.delete(lane);
    start();
  }

  function start(): void {
    while (running < concurrency && next < ready.length) {
      const chosen = ready[next];
      ready[next] = undefined;
      next += 1;
      if (next > 1_000) {
        ready = ready.slice(next);
        next = 0;
      }
      if (chosen === undefined) return;
      running += 1;
      void chosen.task().then(() => ended(chosen.lane));
    }
  }

  return {
    add({ lane }, task) {
      const waiting = lane === undefined ? undefined : behind.get(lane);
      if (waiting !== undefined) {
        waiting.push(task);
        return;
      }
      if (lane !== undefined) behind.set(lane, []);
      ready.push({ lane, task });
      start();
    },
  };
}
