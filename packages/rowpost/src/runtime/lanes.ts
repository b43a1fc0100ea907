/** Runs tasks with limited concurrency; tasks of one lane run in order. */

/** The task must run again: its lane waits, and its place is free. */
export interface Again {
  readonly until: Promise<unknown>;
}

export type Task = () => Promise<Again | undefined>;

interface Lanes {
  /** `lane` undefined: a lane of its own. */
  add(place: { readonly lane: string | undefined }, task: Task): void;
}

interface Ready {
  readonly lane: string | undefined;
  readonly task: Task;
}

/** Tasks must not reject. */
export function createLanes(concurrency: number): Lanes {
  const behind = new Map<string, Task[]>();
  /** Entries before `next` have begun and are released, since a task holds its message's body. */
  let ready: (Ready | undefined)[] = [];
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
      void chosen.task().then((again) => {
        if (again === undefined) ended(chosen.lane);
        else putOff(chosen, again);
      });
    }
  }

  function putOff(chosen: Ready, { until }: Again): void {
    running -= 1;
    void until.then(() => {
      ready.push(chosen);
      start();
    });
    start();
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
