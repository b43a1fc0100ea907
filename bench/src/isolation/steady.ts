/** A topic at a steady rate, and the fate of its messages. */
import type { Outbox } from "rowpost";
import { keyOf, machineMs } from "../relay/messages.ts";
import { orderMessage } from "../scenarios/business.ts";
import type { Endpoints } from "./endpoints.ts";

export const HEALTHY = "healthy";
export const RATE = 50;
/** Not measured: the relay takes leases and opens connections. */
export const WARM_UP_SECONDS = 2;
export const GRACE_MS = 1_000;
/** Numbers of its messages, disjoint from those of loaded rows. */
const FIRST_HEALTHY = 500_000_000;
const FIRST_OTHER = 700_000_000;

export type Committing = ReadonlyMap<number, number>;

/** Arrived and missing messages. The sample of a missing one is its current age. */
export interface Arrived {
  readonly offered: number;
  readonly delivered: number;
  readonly samples: readonly number[];
}

/**
 * Open loop: a transaction begins every 20 ms whether or not the last one has ended. `others`
 * returns the topics of further messages every second.
 */
export async function offerSteadily(
  outbox: Outbox,
  seconds: number,
  others: (second: number) => readonly string[],
): Promise<Committing> {
  const committing = new Map<number, number>();
  const running: Promise<void>[] = [];
  let other = FIRST_OTHER;
  const start = performance.now();
  for (let index = 0; index < seconds * RATE; index += 1) {
    const wait = start + (index * 1000) / RATE - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    for (const topic of index % RATE === 0 ? others(index / RATE) : []) {
      const message = { ...orderMessage(other), topic };
      other += 1;
      running.push(outbox.transaction(async (tx) => void (await outbox.enqueue(tx, message))));
    }
    const number = FIRST_HEALTHY + index;
    running.push(
      outbox.transaction(async (tx) => {
        await outbox.enqueue(tx, { ...orderMessage(number), topic: HEALTHY });
        committing.set(number, machineMs());
      }),
    );
  }
  await Promise.all(running);
  return committing;
}

export function arrivedOf(committing: Committing, endpoints: Endpoints): Arrived {
  const now = machineMs();
  const samples: number[] = [];
  let delivered = 0;
  for (const [number, began] of committing) {
    if (number < FIRST_HEALTHY + WARM_UP_SECONDS * RATE) continue;
    const at = endpoints.arrivedAt(keyOf(number));
    samples.push((at ?? now) - began);
    if (at !== undefined) delivered += 1;
  }
  return { offered: samples.length, delivered, samples };
}
