/**
 * Messages recovered so often that one of them may kill the relay: each is sent alone, so that it
 * fails alone (rule: crash-counting).
 */
import type { InFlight } from "../in-flight.ts";

export interface AroundSuspects {
  /** The first suspect at the head of its key: it goes once nothing else is under way. */
  readonly next: InFlight | undefined;
  /** Messages that may go before any suspect: those of a key end at its suspect. */
  readonly before: readonly InFlight[];
}

/**
 * `ready`: in id order. Only a suspect at the head of its key holds up the others: one behind its
 * key may wait forever.
 */
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
