/**
 * Messages recovered so often that they may kill the relay are sent alone (rule: crash-counting).
 */
import type { InFlight } from "../in-flight.ts";

export interface AroundSuspects {
  /** First suspect at the head of its key. */
  readonly next: InFlight | undefined;
  /** Messages before any suspect of their key. */
  readonly before: readonly InFlight[];
}

/** `ready`: in id order. Only a suspect at the head of its key holds up the others. */
export function aroundSuspects(ready: readonly InFlight[], suspects: ReadonlySet<string>): AroundSuspects {
  const before: InFlight[] = [];
  const begun = new Set<string | null>();
  const ended = new Set<string | null>();
  for (const message of ready) {
    const { orderingKey, id } = message.row;
    if (orderingKey !== null && ended.has(orderingKey)) continue;
    if (!suspects.has(id)) {
      before.push(message);
      begun.add(orderingKey);
    } else if (orderingKey === null || !begun.has(orderingKey)) return { next: message, before };
    else ended.add(orderingKey);
  }
  return { next: undefined, before };
}
