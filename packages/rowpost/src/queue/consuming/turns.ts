/**
 * Tasks that begin only when somebody asks. Those of a partition begin strictly in the order they
 * came: one that waits for its ordering key lets nothing past. Progress is the lowest unfinished
 * id, so the settle of a message waits for all before it; were one of these still to be asked for,
 * a caller that settles what it has before it asks again would wait for ever.
 */
import type { Task } from "../../runtime/lanes.ts";
import type { Lanes } from "./lanes.ts";

export interface Turns extends Lanes {
  /** Begins what may begin now. */
  begin(): void;
}

interface Turn {
  readonly lane: string | undefined;
  readonly task: Task;
}

/** Makes turns with nothing in them. Tasks must not reject, nor be put off. */
export function createTurns(mayBegin: () => boolean): Turns {
  /** By partition; whose turn comes next is first. */
  const waiting = new Map<number, Turn[]>();
  const busy = new Set<string>();

  function take(): Turn | undefined {
    for (const [partition, turns] of waiting) {
      const [turn] = turns;
      if (turn === undefined || (turn.lane !== undefined && busy.has(turn.lane))) continue;
      turns.shift();
      // Behind the other partitions.
      waiting.delete(partition);
      if (turns.length > 0) waiting.set(partition, turns);
      return turn;
    }
    return undefined;
  }

  function begin(): void {
    while (mayBegin()) {
      const turn = take();
      if (turn === undefined) return;
      const { lane } = turn;
      if (lane !== undefined) busy.add(lane);
      void turn.task().then(() => {
        if (lane !== undefined) busy.delete(lane);
        begin();
      });
    }
  }

  return {
    begin,
    add({ partition, lane }, task) {
      const turns = waiting.get(partition);
      if (turns === undefined) waiting.set(partition, [{ lane, task }]);
      else turns.push({ lane, task });
      begin();
    },
  };
}
