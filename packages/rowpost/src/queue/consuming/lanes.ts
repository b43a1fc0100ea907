/** Runs tasks, those of a lane one after the other: `createLanes`, or the turns of a desk. */
import type { Task } from "../../runtime/lanes.ts";

interface Place {
  readonly partition: number;
  readonly lane: string | undefined;
  /** Nothing else of the partition begins before it has ended. */
  readonly isAlone?: boolean;
}

export interface Lanes {
  /** Without `lane` the task has a lane of its own. A lane lies within a partition. */
  add(place: Place, task: Task): void;
}
