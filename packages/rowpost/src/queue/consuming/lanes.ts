/** Either `createLanes`, or the turns of a desk. */
import type { Task } from "../../runtime/lanes.ts";

interface Place {
  readonly partition: number;
  readonly lane: string | undefined;
  /** Nothing else of the partition begins before its end. */
  readonly isAlone?: boolean;
}

export interface Lanes {
  /** Without `lane` the task has its own. A lane lies within a partition. */
  add(place: Place, task: Task): void;
}
