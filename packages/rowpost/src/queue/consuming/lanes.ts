/** Where tasks run, those of a lane one after the other: `createLanes`, or the turns of a desk. */
import type { Task } from "../../runtime/lanes.ts";

export interface Lanes {
  /** `lane` undefined: a lane of its own. A lane lies within a partition. */
  add(place: { readonly partition: number; readonly lane: string | undefined }, task: Task): void;
}
