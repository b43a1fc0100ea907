/**
 * Tasks that begin on request, in the strict order of their partition: one that waits for its
 * ordering key lets nothing past. A settle waits for all earlier messages, so if one of those were
 * not handed out, a caller that settles before it asks for more would wait forever.
 */
import type { Task } from "../../runtime/lanes.ts";
import type { Lanes } from "./lanes.ts";

export interface Turns extends Lanes {
  begin(): void;
}

interface Turn {
  readonly lane: string | undefined;
  readonly task: Task;
}

/** Tasks must neither reject nor be postponed. */
export function createTurns(mayBegin: () => boolean): Turns {
  /** By partition, in order of turns. */
  const waiting = new Map<number, Turn[]>();
  const busy = new Set<string>();

  function take(): Turn | undefined {
    for (const [partition, turns] of waiting) {
      const [turn] = turns;
      if (turn === undefined || (turn.lane !== undefined && busy.has(turn.lane))) continue;
      turns.shift();
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
